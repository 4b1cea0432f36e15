"""What is remembered across threads, as documents (spec/01 §11, docs/use/protocol.md).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Response, delete, get, post, put  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server.body_fields import optional_object, refused, text
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, json_answer

_CONTENT = {"type": "string", "description": "Markdown, at most 262,144 bytes of UTF-8"}
_DOCUMENT = {"type": "object", "required": ["content"], "properties": {"content": _CONTENT}}
_NEW_DOCUMENT = {
    "type": "object",
    "required": ["id", "content"],
    "properties": {"id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"}, "content": _CONTENT},
}


def memory_routes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get("/memories", summary="The documents, the newest first; none while memory is off")
    async def list_memories(request: AnyRequest) -> Response[Any]:
        return json_answer(await host.memories.listing(caller=caller_of(request)))

    @get("/memories/{memory_id:str}", summary="One document")
    async def read_memory(request: AnyRequest, memory_id: FromPath[str]) -> Response[Any]:
        return json_answer(await host.memories.get(memory_id, caller=caller_of(request)))

    @post("/memories", operation_class=documented(body=_NEW_DOCUMENT), summary="A new document")
    async def add_memory(request: AnyRequest) -> Response[Any]:
        body = await optional_object(await request.body())
        name, content = _text(body, "id"), _text(body, "content")
        made = await host.memories.put(name, content, new=True, caller=caller_of(request))
        return json_answer(made, status=201)

    @put(
        "/memories/{memory_id:str}",
        operation_class=documented(body=_DOCUMENT),
        summary="The document is this from now on, whether there was one or not",
    )
    async def put_memory(request: AnyRequest, memory_id: FromPath[str]) -> Response[Any]:
        content = _text(await optional_object(await request.body()), "content")
        return json_answer(await host.memories.put(memory_id, content, caller=caller_of(request)))

    @delete("/memories/{memory_id:str}", status_code=200, summary="There is no such document from now on")
    async def delete_memory(request: AnyRequest, memory_id: FromPath[str]) -> Response[Any]:
        await host.memories.delete(memory_id, caller=caller_of(request))
        return json_answer({"deleted": True})

    return [list_memories, read_memory, add_memory, put_memory, delete_memory]


def _text(body: Mapping[str, Any], field: str) -> str:
    found = text(body, field)
    if found is None:
        raise refused(field, "must be a string")
    return found
