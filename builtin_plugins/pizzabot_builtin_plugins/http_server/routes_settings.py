"""What the person set (spec/01 §11, docs/use/protocol.md).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, get, put  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253

from pizzabot_builtin_plugins.http_server.body_fields import optional_object
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, json_answer

_LIMIT = {"type": "integer", "minimum": -1, "description": "tool calls of one turn; -1 is no limit, 0 is ignored"}
_SETTINGS = {
    "type": "object",
    "properties": {
        "theme": {"type": "string", "enum": ["light", "dark", "system"]},
        "customPromptAddendum": {"type": "string", "maxLength": 8000},
        "enableMemories": {"type": "boolean"},
        "enableAutomations": {"type": "boolean"},
        "maxToolCalls": _LIMIT,
        "maxSubagentToolCalls": _LIMIT,
    },
}


def settings_routes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get("/settings", summary="What the person set, and the defaults of what was not")
    async def read_settings(request: AnyRequest) -> Response[Any]:
        return json_answer(await host.preferences.get(caller=caller_of(request)))

    @put(
        "/settings",
        operation_class=documented(body=_SETTINGS),
        summary="Change some of them, all at once; a field that cannot be is passed over",
    )
    async def change_settings(request: AnyRequest) -> Response[Any]:
        values = await optional_object(await request.body())
        return json_answer(await host.preferences.patch(values, caller=caller_of(request)))

    return [read_settings, change_settings]
