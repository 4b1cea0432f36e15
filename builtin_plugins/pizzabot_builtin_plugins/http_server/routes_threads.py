"""Threads: create, read, list, search, delete, and what waits for a person (spec/01 §4 and §5, wire.md §8).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Response, delete, get, post  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server import thread_search
from pizzabot_builtin_plugins.http_server.body_fields import integer, mapping, not_there, one_of, optional_object, text
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.rows import interrupt_row, langgraph_thread, thread_row
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, checked_id, json_answer
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import Thread, ThreadStatus

IF_EXISTS = ("raise", "do_nothing")

_NEW_THREAD = {
    "type": "object",
    "properties": {
        "thread_id": {"type": "string", "pattern": "^[A-Za-z0-9._~:@-]{1,255}$"},
        "metadata": {"type": "object"},
        "if_exists": {"type": "string", "enum": list(IF_EXISTS)},
    },
}
_LIST_QUERY = {
    "limit": f"how many, 1 to {thread_search.MAX_PAGE}, {thread_search.MAX_PAGE} without it",
    "offset": "how many to leave out first",
    "status": f"only those that are {', '.join(thread_search.STATUSES)}",
}


def thread_routes(services: Services) -> list[HTTPRouteHandler]:
    return [*_single(services), *_several(services), *_waiting(services)]


def _single(services: Services) -> list[HTTPRouteHandler]:
    threads = services.host.threads

    @post("/threads", status_code=200, summary="Create a thread", operation_class=documented(body=_NEW_THREAD))
    async def create_thread(request: AnyRequest) -> Response[Any]:
        thread_id, metadata, if_exists = _read_new_thread(await optional_object(await request.body()))
        caller = caller_of(request)
        thread = await threads.create(thread_id, metadata=metadata, if_exists=if_exists, caller=caller)
        return json_answer(await _described(services, thread, caller))

    @get("/threads/{thread_id:str}", summary="One thread with its newest values")
    async def read_thread(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        caller = caller_of(request)
        thread = await threads.get(checked_id(thread_id, "thread_id"), caller=caller)
        return json_answer(await _described(services, thread, caller))

    @delete("/threads/{thread_id:str}", status_code=200, summary="Stop its run, remove it; whether there was one")
    async def delete_thread(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        deleted = await threads.delete(checked_id(thread_id, "thread_id"), caller=caller_of(request))
        return json_answer({"deleted": deleted})

    return [create_thread, read_thread, delete_thread]


def _several(services: Services) -> list[HTTPRouteHandler]:
    threads = services.host.threads

    @get("/threads/list", operation_class=documented(query=_LIST_QUERY), summary="Threads, newest activity first")
    async def list_threads(request: AnyRequest) -> Response[Any]:
        asked, most = request.query_params, thread_search.MAX_PAGE
        status = one_of(asked, "status", thread_search.STATUSES)
        page = await threads.page(
            limit=integer(asked, "limit", default=most, least=1, most=most),
            offset=integer(asked, "offset", default=0, least=0, most=thread_search.MAX_LOOKED_AT),
            status=None if status is None else ThreadStatus(status),
            caller=caller_of(request),
        )
        return json_answer([thread_row(thread) for thread in page])

    @post(
        "/threads/search",
        status_code=200,
        operation_class=documented(body=thread_search.SEARCH_SCHEMA),
        summary="Threads as LangGraph's clients list them, without their values",
    )
    async def search_threads(request: AnyRequest) -> Response[Any]:
        query = thread_search.read_query(await optional_object(await request.body()))
        caller = caller_of(request)
        found = await thread_search.find(threads, query, caller)
        asked = await _asked_on(services, found, caller)
        rows = [langgraph_thread(thread, interrupts=asked.get(thread.thread_id)) for thread in found]
        return json_answer([_selected(row, query.select) for row in rows])

    @post(
        "/threads/count",
        status_code=200,
        operation_class=documented(body=thread_search.COUNT_SCHEMA),
        summary="How many threads a search would find",
    )
    async def count_threads(request: AnyRequest) -> Response[Any]:
        query = thread_search.read_query(await optional_object(await request.body()))
        return json_answer(len(await thread_search.matching(threads, query, caller_of(request))))

    return [list_threads, search_threads, count_threads]


def _waiting(services: Services) -> list[HTTPRouteHandler]:
    @get("/threads/{thread_id:str}/interrupts", summary="What waits for a person on this thread")
    async def read_interrupts(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        caller, checked = caller_of(request), checked_id(thread_id, "thread_id")
        await services.host.threads.get(checked, caller=caller)
        waiting = await services.host.runs.interrupts(checked, caller=caller)
        return json_answer({"interrupts": [interrupt_row(found) for found in waiting]})

    @get("/inbox", summary="What waits for a person on any thread, oldest first")
    async def read_inbox(request: AnyRequest) -> Response[Any]:
        waiting = await services.host.runs.interrupts(caller=caller_of(request))
        return json_answer({"interrupts": [interrupt_row(found) for found in waiting]})

    return [read_interrupts, read_inbox]


def _read_new_thread(body: Mapping[str, Any]) -> tuple[str | None, dict[str, Any], str]:
    not_there(body, "supersteps", "ttl")
    if_exists = one_of(body, "if_exists", IF_EXISTS)
    return text(body, "thread_id"), mapping(body, "metadata") or {}, if_exists or "raise"


async def _described(services: Services, thread: Thread, caller: Caller) -> dict[str, Any]:
    """LangGraph's thread. One that nothing was said in has no state yet, and the graph need not be loaded for it."""
    if thread.next_seq <= 1:
        return langgraph_thread(thread)
    state = await services.host.threads.state(thread.thread_id, caller=caller)
    interrupts = {task["id"]: task["interrupts"] for task in state["tasks"] if task["interrupts"]}
    return langgraph_thread(thread, values=state["values"], interrupts=interrupts)


async def _asked_on(
    services: Services, threads: Sequence[Thread], caller: Caller
) -> Mapping[str, Mapping[str, list[dict[str, Any]]]]:
    """Thread id -> its interrupts as LangGraph's clients read them, from the inbox: no state need be loaded."""
    asked: dict[str, dict[str, list[dict[str, Any]]]] = {}
    if any(thread.status is ThreadStatus.INTERRUPTED for thread in threads):
        for found in await services.host.runs.interrupts(caller=caller):
            value = {"id": found.interrupt_id, "value": dict(found.payload)}
            asked.setdefault(found.thread_id, {})[found.interrupt_id] = [value]
    return asked


def _selected(row: dict[str, Any], fields: Sequence[str] | None) -> dict[str, Any]:
    return row if fields is None else {name: row[name] for name in fields}
