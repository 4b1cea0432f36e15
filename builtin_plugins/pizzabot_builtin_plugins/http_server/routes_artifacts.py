"""A thread's own files: list, read, write, restore, take along, bring; what a run did to them (spec/12 §2.1).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from litestar import Response, delete, get, post, put  # noqa: TID253 - see above
from litestar.exceptions import MethodNotAllowedException  # noqa: TID253
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253
from litestar.types import ASGIApp  # noqa: TID253

from pizzabot_builtin_plugins.http_server.arguments import Arguments
from pizzabot_builtin_plugins.http_server.body_fields import integer, optional_object, refused, text
from pizzabot_builtin_plugins.http_server.file_paths import file_path
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, checked_id, json_answer
from pizzabot_builtin_plugins.http_server.stored_files import stored_file
from pizzabot_builtin_plugins.http_server.streamed_forms import StreamedForm
from pizzabot_hookspecs import InvalidRequest

MAX_UPLOAD_BODY_BYTES = 51 * 1024 * 1024
"""Of a form that brings a file: 50 MiB, and what is around them."""
MAX_FILES = 200
"""Files of one page."""
DEFAULT_FILES = 100
MAX_VERSION = 2**53 - 1
_ARCHIVE = "/archive"
_MAX_ITEMS = 1_000

_ANY = "application/octet-stream"
_PAGE_QUERY = {
    "cursor": "that of the page before",
    "limit": f"how many files, 1 to {MAX_FILES}, {DEFAULT_FILES} without it",
}
_CONTENT = {
    "type": "object",
    "required": ["content"],
    "properties": {
        "content": {"type": "string", "description": "at most 2,097,152 bytes of UTF-8"},
        "baseSha256": {"type": ["string", "null"], "description": "what was read; null creates the file"},
    },
}
_VERSION = {"type": "object", "required": ["version"], "properties": {"version": {"type": "integer", "minimum": 1}}}
_ITEM = {
    "type": "object",
    "required": ["path", "version"],
    "properties": {"path": {"type": "string"}, "version": {"type": "integer", "minimum": 1}},
}
_ITEMS = {"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": _ITEM}}}


def artifact_routes(services: Services) -> list[HTTPRouteHandler]:
    return [*_reading(services), *_writing(services), *_versions(services), *_archive(services), *_changes(services)]


def _reading(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get(
        "/threads/{thread_id:str}/artifacts",
        operation_class=documented(query=_PAGE_QUERY),
        summary="The thread's own files on the branch that it is at, the newest first",
    )
    async def list_artifacts(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        asked = Arguments.of_query(request, *_PAGE_QUERY)
        page = await host.workspace.page(
            checked_id(thread_id, "thread_id"),
            cursor=asked.text("cursor"),
            limit=asked.integer("limit", least=1, most=MAX_FILES) or DEFAULT_FILES,
            caller=caller_of(request),
        )
        return json_answer(page)

    @get(
        _file("artifacts"),
        operation_class=documented(query={"version": "an earlier version"}, answer=_ANY),
        summary="A file's bytes, or one range of them",
    )
    async def read_artifact(request: AnyRequest, thread_id: FromPath[str]) -> ASGIApp:
        version = Arguments.of_query(request, "version").integer("version", least=1, most=MAX_VERSION)
        thread, path = checked_id(thread_id, "thread_id"), file_path(request)
        get_it = partial(host.workspace.get, thread, path, version=version, caller=caller_of(request))
        return stored_file(services, request, get_it)  # type: ignore[return-value]  # Litestar's types are its own

    return [list_artifacts, read_artifact]


def _writing(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @put(
        _file("artifacts"),
        request_max_body_size=None,
        operation_class=documented(body=_CONTENT),
        summary="A new version of a text, where it is still what was read",
    )
    async def put_artifact(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, path = checked_id(thread_id, "thread_id"), file_path(request)
        body = await optional_object(await request.body())
        content, base = text(body, "content"), text(body, "baseSha256")
        if content is None:
            raise refused("content", "is missing")
        row = await host.workspace.put(thread, path, _encoded(content), base_sha256=base, caller=caller_of(request))
        return json_answer(row)

    @delete(
        _file("artifacts"),
        operation_class=documented(),
        status_code=200,
        summary="A version that says the file is gone",
    )
    async def delete_artifact(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, path = checked_id(thread_id, "thread_id"), file_path(request)
        return json_answer(await host.workspace.delete(thread, path, caller=caller_of(request)))

    @post(
        "/threads/{thread_id:str}/uploads",
        request_max_body_size=None,
        operation_class=documented(form={"file": "one file, at most 50 MiB"}),
        summary="A file of yours, into /uploads/",
    )
    async def upload(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread = checked_id(thread_id, "thread_id")
        form = StreamedForm(request, MAX_UPLOAD_BODY_BYTES)
        try:
            await form.file()
            kept = await host.workspace.upload(
                thread, form.content(), filename=form.filename, caller=caller_of(request)
            )
        finally:
            await form.close()
        return json_answer(kept, status=201)

    return [put_artifact, delete_artifact, upload]


def _versions(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get(
        _file("artifact-versions"),
        operation_class=documented(),
        summary="The versions of a file on every branch, the newest first",
    )
    async def list_versions(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, path = checked_id(thread_id, "thread_id"), file_path(request)
        return json_answer(await host.workspace.versions(thread, path, caller=caller_of(request)))

    @post(
        _file("artifact-versions"),
        operation_class=documented(body=_VERSION),
        status_code=200,
        summary="The content of an earlier version as a new one",
    )
    async def restore_version(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, path = checked_id(thread_id, "thread_id"), file_path(request)
        version = _number(await optional_object(await request.body()), "version")
        return json_answer(await host.workspace.restore(thread, path, version, caller=caller_of(request)))

    return [list_versions, restore_version]


def _archive(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @post(
        _file("artifacts"),
        operation_class=documented(body=_ITEMS, answer="application/zip"),
        status_code=200,
        summary="To /archive: these versions as a ZIP",
    )
    async def make_archive(request: AnyRequest, thread_id: FromPath[str]) -> ASGIApp:
        thread = checked_id(thread_id, "thread_id")
        if file_path(request) != _ARCHIVE:
            raise MethodNotAllowedException(detail="a file is written with PUT; POST is for artifacts/archive")
        items = _items(await optional_object(await request.body()))
        get_it = partial(host.workspace.archive, thread, items, caller=caller_of(request))
        return stored_file(services, request, get_it)  # type: ignore[return-value]  # as above

    return [make_archive]


def _changes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get("/threads/{thread_id:str}/runs/{run_id:str}/changes", summary="What a run did to the thread's files")
    async def read_changes(request: AnyRequest, thread_id: FromPath[str], run_id: FromPath[str]) -> Response[Any]:
        thread, run = checked_id(thread_id, "thread_id"), checked_id(run_id, "run_id")
        return json_answer(await host.workspace.changes(thread, run, caller=caller_of(request)))

    @get(
        "/threads/{thread_id:str}/runs/{run_id:str}/changes/{file_path:path}",
        operation_class=documented(),
        summary="What a run did to one file, with the difference",
    )
    async def read_change(request: AnyRequest, thread_id: FromPath[str], run_id: FromPath[str]) -> Response[Any]:
        thread, run = checked_id(thread_id, "thread_id"), checked_id(run_id, "run_id")
        return json_answer(
            await host.workspace.changes(thread, run, path=file_path(request), caller=caller_of(request))
        )

    return [read_changes, read_change]


def _file(kind: str) -> str:
    return f"/threads/{{thread_id:str}}/{kind}/{{file_path:path}}"


def _encoded(content: str) -> bytes:
    """Raises `InvalidRequest` `not_text` for half a surrogate pair."""
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("not_text", "`content` is not Unicode text: it has half of a surrogate pair") from None


def _number(body: Mapping[str, Any], field: str) -> int:
    if body.get(field) is None or isinstance(body[field], str):
        raise refused(field, "must be an integer")
    return integer(body, field, default=1, least=1, most=MAX_VERSION)


def _items(body: Mapping[str, Any]) -> list[tuple[str, int]]:
    items = body.get("items")
    if not isinstance(items, list) or len(items) > _MAX_ITEMS:
        raise refused("items", f"must be a list of at most {_MAX_ITEMS} objects with path and version")
    found: list[tuple[str, int]] = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("path"), str):
            raise refused("items", "must be objects with path and version")
        found.append((item["path"], _number(item, "version")))
    return found
