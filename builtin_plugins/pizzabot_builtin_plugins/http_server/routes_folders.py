"""Folders of the machine that the agent may use (spec/01 §11, docs/use/protocol.md).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, delete, get, post  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server.body_fields import optional_object, refused
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, json_answer
from pizzabot_hookspecs import InvalidRequest

_BROWSE_QUERY = {"path": "the folder to look into; without it, the roots"}
_GRANT = {
    "type": "object",
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 4096},
        "readOnly": {"type": "boolean", "default": True},
        "acknowledgeDataRootAccess": {"type": "boolean", "default": False},
    },
}


def folder_routes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get("/local-folders", summary="What is granted, and whether that can be changed here")
    async def list_folders(request: AnyRequest) -> Response[Any]:
        return json_answer(await host.folders.listing(caller=caller_of(request)))

    @get(
        "/local-folders/browse",
        operation_class=documented(query=_BROWSE_QUERY),
        summary="Folders beneath those that may be browsed",
    )
    async def browse_folders(request: AnyRequest) -> Response[Any]:
        path = request.query_params.get("path")
        return json_answer(await host.folders.browse(path, caller=caller_of(request)))

    @post("/local-folders", operation_class=documented(body=_GRANT), summary="Grant a folder to the agent")
    async def grant_folder(request: AnyRequest) -> Response[Any]:
        body = await optional_object(await request.body())
        path, read_only = body.get("path"), body.get("readOnly", True)
        acknowledged = body.get("acknowledgeDataRootAccess", False)
        if not isinstance(read_only, bool):
            raise InvalidRequest(
                "invalid_access", "`readOnly` must be true or false", fields={"readOnly": "not a flag"}
            )
        if not isinstance(path, str):
            raise InvalidRequest("invalid_path", "`path` must be a string", fields={"path": "not a string"})
        if not isinstance(acknowledged, bool):
            raise refused("acknowledgeDataRootAccess", "must be true or false")
        made = await host.folders.grant(
            path, read_only=read_only, acknowledge_data_root=acknowledged, caller=caller_of(request)
        )
        return json_answer(made, status=201)

    @delete("/local-folders/{folder_id:str}", status_code=200, summary="Take a folder back; whether it was granted")
    async def revoke_folder(request: AnyRequest, folder_id: FromPath[str]) -> Response[Any]:
        return json_answer({"deleted": await host.folders.revoke(folder_id, caller=caller_of(request))})

    return [list_folders, browse_folders, grant_folder, revoke_folder]
