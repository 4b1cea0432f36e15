"""The transcript: pages, items of a turn, tool calls in full, the export (spec/12 §1.1, docs/use/protocol.md).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from litestar import Response, get  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253
from litestar.types import ASGIApp  # noqa: TID253

from pizzabot_builtin_plugins.http_server.arguments import Arguments, checked_turn, wrong
from pizzabot_builtin_plugins.http_server.asgi import error_body
from pizzabot_builtin_plugins.http_server.byte_ranges import Conditions, part_of
from pizzabot_builtin_plugins.http_server.call_paths import decoded_call
from pizzabot_builtin_plugins.http_server.downloads import Download, Outgoing, outgoing_export
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, checked_id, json_answer
from pizzabot_builtin_plugins.http_server.subscriptions import MAX_SEQ
from pizzabot_hookspecs.host import ExportBranches, ExportFormat

MAX_TURNS = 100
"""Turns of one page."""
DEFAULT_TURNS = 20
MAX_ITEMS = 200
"""Items of one answer."""
DEFAULT_ITEMS = 100
ENCODE_IN_THREAD_CHARACTERS = 64 * 1024
"""From here on a tool's text is made into bytes beside the event loop."""

_NAMESPACE_QUERY = {"namespace": "a subagent's: the segments of its namespace, joined with | or NUL"}
_PAGE_QUERY = {
    "limit": f"how many turns, 1 to {MAX_TURNS}, {DEFAULT_TURNS} without it",
    "before_seq": "turns before this place",
    "around_seq": "turns around this place; not together with before_seq",
    "head": "the turn that ends the path, instead of the thread's head",
    **_NAMESPACE_QUERY,
}
_ITEMS_QUERY = {
    "limit": f"how many items, 1 to {MAX_ITEMS}, {DEFAULT_ITEMS} without it",
    "before_seq": "items before this place",
    **_NAMESPACE_QUERY,
}
_EXPORT_QUERY = {"format": "md, the default, or json", "branches": "path, the default, or all"}


def transcript_routes(services: Services) -> list[HTTPRouteHandler]:
    texts = [_tool_text(services, part) for part in ("input", "output")]
    return [*_pages(services), *texts, _export(services)]


def _pages(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get(
        "/threads/{thread_id:str}/transcript",
        operation_class=documented(query=_PAGE_QUERY),
        summary="The conversation as a person sees it: a page of turns, exact as of its asOfSeq",
    )
    async def read_transcript(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        asked, thread = Arguments.of_query(request, *_PAGE_QUERY), checked_id(thread_id, "thread_id")
        before, around = (asked.integer(name, least=0, most=MAX_SEQ) for name in ("before_seq", "around_seq"))
        if before is not None and around is not None:
            raise wrong("around_seq", "must not stand beside before_seq")
        page = await host.transcripts.page(
            thread,
            limit=asked.integer("limit", least=1, most=MAX_TURNS) or DEFAULT_TURNS,
            before_seq=before,
            around_seq=around,
            head=asked.turn("head"),
            namespace=asked.namespace("namespace"),
            caller=caller_of(request),
        )
        return json_answer(page)

    @get(
        "/threads/{thread_id:str}/turns/{turn_id:str}/items",
        operation_class=documented(query=_ITEMS_QUERY),
        summary="Items of a turn that its page left out, oldest first",
    )
    async def read_items(request: AnyRequest, thread_id: FromPath[str], turn_id: FromPath[str]) -> Response[Any]:
        asked, thread = Arguments.of_query(request, *_ITEMS_QUERY), checked_id(thread_id, "thread_id")
        items = await host.transcripts.items(
            thread,
            checked_turn(turn_id, "turn_id"),
            limit=asked.integer("limit", least=1, most=MAX_ITEMS) or DEFAULT_ITEMS,
            before_seq=asked.integer("before_seq", least=0, most=MAX_SEQ),
            namespace=asked.namespace("namespace"),
            caller=caller_of(request),
        )
        return json_answer(items)

    return [read_transcript, read_items]


def _tool_text(services: Services, part: str) -> HTTPRouteHandler:
    host = services.host

    @get(
        f"/threads/{{thread_id:str}}/tool-calls/{{call_id:str}}/{part}",
        operation_class=documented(query={"item": "the id of the call's item"}, answer="text/plain"),
        summary=f"The whole {part} of a tool call as it was written, or one range of its bytes",
    )
    async def read_tool_text(request: AnyRequest, thread_id: FromPath[str], call_id: FromPath[str]) -> Response[Any]:
        thread, call = checked_id(thread_id, "thread_id"), decoded_call(call_id)
        item = Arguments.of_query(request, "item").text("item")
        text = await host.transcripts.tool_text(thread, call, part, item_id=item, caller=caller_of(request))
        return await _text_answer(request, text)

    return read_tool_text


async def _text_answer(request: AnyRequest, text: str) -> Response[Any]:
    conditions = Conditions(
        range=request.headers.get("range"),
        if_range=request.headers.get("if-range"),
        if_none_match=request.headers.get("if-none-match"),
    )
    short = len(text) < ENCODE_IN_THREAD_CHARACTERS
    found = part_of(text, conditions) if short else await asyncio.to_thread(part_of, text, conditions)
    headers = {**found.headers, "cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
    if found.status == 416:
        total = headers["content-range"].rpartition("/")[2]
        body = error_body("range_not_satisfiable", f"the text has {total} bytes; ask for a range that begins in it")
        return json_answer(body, status=416, headers=headers)
    if found.status == 304:
        return Response(None, status_code=304, headers=headers)
    return Response(found.body, status_code=found.status, media_type="text/plain", headers=headers)


def _export(services: Services) -> HTTPRouteHandler:
    @get(
        "/threads/{thread_id:str}/export",
        operation_class=documented(query=_EXPORT_QUERY, answer=("text/markdown", "application/json")),
        summary="The whole conversation as a file, or an error and nothing",
    )
    async def export(request: AnyRequest, thread_id: FromPath[str]) -> ASGIApp:
        asked, thread = Arguments.of_query(request, *_EXPORT_QUERY), checked_id(thread_id, "thread_id")
        export = partial(
            services.host.transcripts.export,
            thread,
            format=asked.one_of("format", ExportFormat.MARKDOWN),
            branches=asked.one_of("branches", ExportBranches.PATH),
            caller=caller_of(request),
        )

        async def make() -> Outgoing:
            return outgoing_export(await export())

        return Download(  # type: ignore[return-value]  # Litestar's ASGI types are TypedDicts of its own
            make=make,
            logger=services.logger,
            redact=services.redact,
            write_seconds=services.settings.limits.write_seconds,
        )

    return export
