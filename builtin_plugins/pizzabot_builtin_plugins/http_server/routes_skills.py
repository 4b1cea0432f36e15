"""Skills: list, read, write, switch, draft, import and export; and what tools a skill can declare (spec/01 §7).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from litestar import Response, delete, get, patch, post, put  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server.asgi import error_body
from pizzabot_builtin_plugins.http_server.body_fields import optional_object
from pizzabot_builtin_plugins.http_server.errors import status_of
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, json_answer
from pizzabot_builtin_plugins.http_server.streamed_forms import StreamedForm
from pizzabot_hookspecs import Conflict, InvalidRequest

MAX_SKILL_ARCHIVE_BODY_BYTES = 21 * 1024 * 1024
"""Of a form that brings an archive: 20 MiB, and what is around them."""

_FILE = {
    "type": "object",
    "required": ["path", "content"],
    "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "encoding": {"type": "string", "enum": ["base64"]},
        "mimeType": {"type": "string"},
    },
}
_DRAFT: dict[str, Any] = {
    "name": {"type": "string"},
    "description": {"type": "string"},
    "body": {"type": "string"},
    "files": {"type": "array", "items": _FILE},
    "declaredTools": {"type": "array", "items": {"type": "string"}},
    "interruptOn": {"type": "object"},
}
_REQUIRED = ["name", "description", "body"]
_CHANGED = {"type": "object", "required": _REQUIRED, "properties": _DRAFT}
_NEW = {"type": "object", "required": ["id", *_REQUIRED], "properties": {"id": {"type": "string"}, **_DRAFT}}
_ENABLED = {"type": "object", "required": ["enabled"], "properties": {"enabled": {"type": "boolean"}}}
_PROMPT = {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}}


def skill_routes(services: Services) -> list[HTTPRouteHandler]:
    return [*_reading(services), *_writing(services), *_more(services)]


def _reading(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get("/skills", summary="Every skill with its state, and what is wrong with skills that cannot be used")
    async def list_skills(request: AnyRequest) -> Response[Any]:
        return await _answered(await host.skills.listing(caller=caller_of(request)))

    @get("/skills/{skill_id:str}", summary="One skill with its text and its files")
    async def read_skill(request: AnyRequest, skill_id: FromPath[str]) -> Response[Any]:
        return await _answered(await host.skills.get(skill_id, caller=caller_of(request)))

    @get(
        "/skills/{skill_id:str}/export",
        operation_class=documented(answer="application/zip"),
        summary="The skill as a ZIP that import takes",
    )
    async def export_skill(request: AnyRequest, skill_id: FromPath[str]) -> Response[bytes]:
        archive = await host.skills.export_archive(skill_id, caller=caller_of(request))
        headers = {
            "content-disposition": f'attachment; filename="{skill_id}.zip"',
            "cache-control": "private, no-cache",
            "x-content-type-options": "nosniff",
        }
        return Response(archive, media_type="application/zip", headers=headers)

    @get("/tools", summary="What a skill can declare: built-in tools and those of the connected MCP servers")
    async def list_tools(request: AnyRequest) -> Response[Any]:
        return await _answered(await host.skills.tools(caller=caller_of(request)))

    return [list_skills, read_skill, export_skill, list_tools]


def _writing(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @post(
        "/skills", request_max_body_size=None, operation_class=documented(body=_NEW), summary="A new skill of your own"
    )
    async def create_skill(request: AnyRequest) -> Response[Any]:
        made = await host.skills.create(await _object(request), caller=caller_of(request))
        return await _answered(made, status=201)

    @patch(
        "/skills/{skill_id:str}",
        request_max_body_size=None,
        operation_class=documented(body=_CHANGED),
        summary="The skill is exactly this from now on; of a shipped one this makes your own",
    )
    async def replace_skill(request: AnyRequest, skill_id: FromPath[str]) -> Response[Any]:
        body = await _object(request)
        return await _answered(await host.skills.replace(skill_id, body, caller=caller_of(request)))

    @delete("/skills/{skill_id:str}", status_code=200, summary="Remove a skill of your own; a shipped one is back then")
    async def delete_skill(request: AnyRequest, skill_id: FromPath[str]) -> Response[Any]:
        return json_answer(await host.skills.delete(skill_id, caller=caller_of(request)))

    @put(
        "/skills/{skill_id:str}/enabled",
        operation_class=documented(body=_ENABLED),
        summary="Switch a skill on or off",
    )
    async def switch_skill(request: AnyRequest, skill_id: FromPath[str]) -> Response[Any]:
        enabled = (await _object(request)).get("enabled")
        if not isinstance(enabled, bool):
            raise _invalid("enabled", "has to be true or false")
        try:
            return json_answer(await host.skills.enable(skill_id, enabled, caller=caller_of(request)))
        except Conflict as error:
            blockers = [{"id": server, "reason": reason} for server, reason in error.fields.items()]
            body = error_body(error.code, services.redact(error.detail), error.fields) | {"blockers": blockers}
            return json_answer(body, status=status_of(error))

    return [create_skill, replace_skill, delete_skill, switch_skill]


def _more(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @post(
        "/skills/generate",
        status_code=200,
        operation_class=documented(body=_PROMPT),
        summary="A draft by the model; nothing is stored",
    )
    async def draft_skill(request: AnyRequest) -> Response[Any]:
        prompt = (await _object(request)).get("prompt")
        if not isinstance(prompt, str):
            raise _invalid("prompt", "has to be text")
        return json_answer(await host.skills.generate(prompt, caller=caller_of(request)))

    @post(
        "/skills/import",
        request_max_body_size=None,
        operation_class=documented(form={"file": "the ZIP"}),
        summary="A skill out of a ZIP",
    )
    async def import_skill(request: AnyRequest) -> Response[Any]:
        form = StreamedForm(request, MAX_SKILL_ARCHIVE_BODY_BYTES)
        try:
            await form.file()
            archive = b"".join([piece async for piece in form.content()])
        finally:
            await form.close()
        made = await host.skills.import_archive(archive, caller=caller_of(request))
        return await _answered(made, status=201)

    return [draft_skill, import_skill]


async def _object(request: AnyRequest) -> Mapping[str, Any]:
    return await optional_object(await request.body())


async def _answered(payload: object, *, status: int = 200) -> Response[bytes]:
    """Encoded beside the event loop: a bundle may have megabytes, a list a thousand rows."""
    return await asyncio.to_thread(json_answer, payload, status=status)


def _invalid(name: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid", f"`{name}` {problem}", fields={name: problem})
