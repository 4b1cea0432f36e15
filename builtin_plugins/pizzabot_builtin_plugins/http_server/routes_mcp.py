"""MCP servers: list, read, write, switch, connect anew, and their tools (spec/01 §8).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from litestar import Response, delete, get, patch, post, put  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server.asgi import error_body
from pizzabot_builtin_plugins.http_server.body_fields import optional_object
from pizzabot_builtin_plugins.http_server.errors import status_of
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, json_answer
from pizzabot_hookspecs import Conflict, InvalidRequest

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_ENTRY: dict[str, Any] = {
    "type": {"type": "string", "enum": ["stdio", "http", "sse"]},
    "command": {"type": "string"},
    "args": {"type": "array", "items": {"type": "string"}},
    "env": _TEXTS,
    "cwd": {"type": "string"},
    "url": {"type": "string"},
    "headers": _TEXTS,
    "enabled": {"type": "boolean"},
    "hide": {"type": "array", "items": {"type": "string"}},
}
_WHOLE = {"entry": {"type": "object", "properties": _ENTRY}}
_CHANGED = {"type": "object", "properties": {**_ENTRY, **_WHOLE}}
_NEW = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, **_ENTRY, **_WHOLE}}
_ENABLED = {"type": "object", "required": ["enabled"], "properties": {"enabled": {"type": "boolean"}}}


def mcp_routes(services: Services) -> list[HTTPRouteHandler]:
    return [*_reading(services), *_writing(services), *_switching(services)]


def _reading(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get("/mcp-servers", summary="Every MCP server with its state; values of variables and headers are hidden")
    async def list_servers(request: AnyRequest) -> Response[Any]:
        return json_answer(await host.mcp_servers.listing(caller=caller_of(request)))

    @get("/mcp-servers/{server_id:str}", summary="The entry of a server of your own as it was written")
    async def read_server(request: AnyRequest, server_id: FromPath[str]) -> Response[Any]:
        return json_answer(await host.mcp_servers.get(server_id, caller=caller_of(request)))

    @get("/mcp-servers/{server_id:str}/tools", summary="The tools that a connected server has")
    async def list_server_tools(request: AnyRequest, server_id: FromPath[str]) -> Response[Any]:
        return json_answer(await host.mcp_servers.tools(server_id, caller=caller_of(request)))

    return [list_servers, read_server, list_server_tools]


def _writing(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @post("/mcp-servers", operation_class=documented(body=_NEW), summary="A new MCP server of your own")
    async def create_server(request: AnyRequest) -> Response[Any]:
        body = await _object(request)
        server_id = body.get("id")
        if not isinstance(server_id, str):
            raise _invalid("id", "has to be text")
        made = await host.mcp_servers.create(server_id, _entry(body), caller=caller_of(request))
        return json_answer(made, status=201)

    @patch(
        "/mcp-servers/{server_id:str}",
        operation_class=documented(body=_CHANGED),
        summary="The entry is this from now on; without `enabled` that stays as it is",
    )
    async def replace_server(request: AnyRequest, server_id: FromPath[str]) -> Response[Any]:
        entry = _entry(await _object(request))
        return await _or_blocked(services, host.mcp_servers.replace(server_id, entry, caller=caller_of(request)))

    @delete("/mcp-servers/{server_id:str}", status_code=200, summary="Remove an MCP server of your own")
    async def delete_server(request: AnyRequest, server_id: FromPath[str]) -> Response[Any]:
        return await _or_blocked(services, host.mcp_servers.delete(server_id, caller=caller_of(request)))

    return [create_server, replace_server, delete_server]


def _switching(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @put(
        "/mcp-servers/{server_id:str}/enabled",
        operation_class=documented(body=_ENABLED),
        summary="Switch an MCP server on or off",
    )
    async def switch_server(request: AnyRequest, server_id: FromPath[str]) -> Response[Any]:
        enabled = (await _object(request)).get("enabled")
        if not isinstance(enabled, bool):
            raise _invalid("enabled", "has to be true or false")
        return await _or_blocked(services, host.mcp_servers.enable(server_id, enabled, caller=caller_of(request)))

    @post(
        "/mcp-servers/{server_id:str}/reconnect",
        status_code=200,
        summary="Connect a server in error or crashed anew; how it is after the attempt",
    )
    async def reconnect_server(request: AnyRequest, server_id: FromPath[str]) -> Response[Any]:
        return json_answer(await host.mcp_servers.reconnect(server_id, caller=caller_of(request)))

    return [switch_server, reconnect_server]


async def _object(request: AnyRequest) -> Mapping[str, Any]:
    return await optional_object(await request.body())


def _entry(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """`{entry: {…}}`, or the entry itself beside the id."""
    entry = body.get("entry")
    if entry is None:
        return {key: value for key, value in body.items() if key != "id"}
    if not isinstance(entry, dict):
        raise _invalid("entry", "has to be an object")
    return entry


async def _or_blocked(services: Services, change: Awaitable[Mapping[str, Any]]) -> Response[Any]:
    """The answer, or 409 with the skills that stand in the way as `blockers`."""
    try:
        return json_answer(await change)
    except Conflict as error:
        if error.code != "resource_in_use":
            raise
        blockers = [{"id": skill, "name": name} for skill, name in error.fields.items()]
        body = error_body(error.code, services.redact(error.detail), error.fields) | {"blockers": blockers}
        return json_answer(body, status=status_of(error))


def _invalid(name: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid", f"`{name}` {problem}", fields={name: problem})
