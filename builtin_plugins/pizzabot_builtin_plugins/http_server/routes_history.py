"""States of a thread: the newest, one by its checkpoint, the history, and writing one (spec/01 §4, wire.md §8).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from litestar import Response, get, post  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253
from litestar.response import Stream  # noqa: TID253

from pizzabot_builtin_plugins.http_server.body_fields import integer, mapping, optional_object, refused, text, texts
from pizzabot_builtin_plugins.http_server.checkpoint_names import (
    CHECKPOINT_SCHEMA,
    MAX_SELECTED,
    SELECT_SCHEMA,
    CheckpointName,
    read_before,
    read_checkpoint,
    read_selection,
    selected,
)
from pizzabot_builtin_plugins.http_server.history import MAX_ENTRIES, HistoryQuery, encoded_history, find_state
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, checked_id, json_answer

DEFAULT_ENTRIES = 10

_LIMIT = {"type": "integer", "minimum": 1, "maximum": MAX_ENTRIES, "default": DEFAULT_ENTRIES}
_HISTORY = {
    "type": "object",
    "properties": {
        "limit": _LIMIT,
        "before": {"oneOf": [{"type": "string"}, {"type": "object"}]},
        "checkpoint": CHECKPOINT_SCHEMA,
        "metadata": {"type": "object"},
        "select": SELECT_SCHEMA,
    },
}
_AT_CHECKPOINT = {
    "type": "object",
    "required": ["checkpoint"],
    "properties": {"checkpoint": CHECKPOINT_SCHEMA, "subgraphs": {"type": "boolean"}, "select": SELECT_SCHEMA},
}
_WRITE = {
    "type": "object",
    "required": ["values"],
    "properties": {
        "values": {"type": "object"},
        "checkpoint": CHECKPOINT_SCHEMA,
        "checkpoint_id": {"type": "string"},
        "as_node": {"type": "string"},
    },
}
_SELECT_QUERY = {"select": "a field to answer, several times for several; `values.<key>` for one value"}
_HISTORY_QUERY = {
    "limit": f"how many states, 1 to {MAX_ENTRIES}, {DEFAULT_ENTRIES} without it",
    "before": "the id of a checkpoint: states before it",
    **_SELECT_QUERY,
}


def history_routes(services: Services) -> list[HTTPRouteHandler]:
    return [*_reading(services), *_writing(services)]


def _reading(services: Services) -> list[HTTPRouteHandler]:
    threads = services.host.threads

    @get(
        "/threads/{thread_id:str}/state",
        operation_class=documented(query=_SELECT_QUERY),
        summary="The newest state as LangGraph's clients read it",
    )
    async def read_state(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        fields = read_selection(_selected_in_query(request))
        state = await threads.state(checked_id(thread_id, "thread_id"), caller=caller_of(request))
        return json_answer(selected(state, fields))

    @get(
        "/threads/{thread_id:str}/state/{checkpoint_id:str}",
        operation_class=documented(query=_SELECT_QUERY),
        summary="The state at that checkpoint",
    )
    async def read_checkpoint_state(
        request: AnyRequest, thread_id: FromPath[str], checkpoint_id: FromPath[str]
    ) -> Response[Any]:
        fields = read_selection(_selected_in_query(request))
        name = CheckpointName(checkpoint_id=checked_id(checkpoint_id, "checkpoint_id"))
        state = await find_state(threads, checked_id(thread_id, "thread_id"), name, caller_of(request))
        return json_answer(selected(state, fields))

    @post(
        "/threads/{thread_id:str}/state/checkpoint",
        status_code=200,
        operation_class=documented(body=_AT_CHECKPOINT),
        summary="The state at that checkpoint, which may be a subagent's",
    )
    async def read_named_state(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, body = checked_id(thread_id, "thread_id"), await optional_object(await request.body())
        if not mapping(body, "checkpoint"):
            raise refused("checkpoint", "must be an object with `checkpoint_id`")
        fields = read_selection(texts(body, "select", most=MAX_SELECTED))
        state = await find_state(threads, thread, read_checkpoint(body, thread), caller_of(request))
        return json_answer(selected(state, fields))

    @get(
        "/threads/{thread_id:str}/history",
        operation_class=documented(query=_HISTORY_QUERY),
        summary="Earlier states, newest first",
    )
    async def read_history(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any] | Stream:
        query = HistoryQuery(
            limit=_limit(request.query_params),
            before=read_before(request.query_params.get("before")),
            select=read_selection(_selected_in_query(request)),
        )
        return _joined(await encoded_history(threads, checked_id(thread_id, "thread_id"), query, caller_of(request)))

    @post(
        "/threads/{thread_id:str}/history",
        status_code=200,
        operation_class=documented(body=_HISTORY),
        summary="Earlier states, newest first, also a subagent's own",
    )
    async def search_history(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any] | Stream:
        thread = checked_id(thread_id, "thread_id")
        query = _read_history_query(await optional_object(await request.body()), thread)
        return _joined(await encoded_history(threads, thread, query, caller_of(request)))

    return [read_state, read_checkpoint_state, read_named_state, read_history, search_history]


def _writing(services: Services) -> list[HTTPRouteHandler]:
    threads = services.host.threads

    @post(
        "/threads/{thread_id:str}/state",
        status_code=200,
        operation_class=documented(body=_WRITE),
        summary="Write values as if a node had returned them",
    )
    async def write_state(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, body = checked_id(thread_id, "thread_id"), await optional_object(await request.body())
        values = mapping(body, "values")
        if values is None:
            raise refused("values", "must be an object")
        checkpoint_id, as_node = _written_checkpoint(body, thread), text(body, "as_node") or None
        caller = caller_of(request)
        state = await threads.update_state(thread, values, as_node=as_node, checkpoint_id=checkpoint_id, caller=caller)
        checkpoint = state["checkpoint"]
        written = checkpoint["checkpoint_id"] if checkpoint is not None else None
        return json_answer({"checkpoint": checkpoint, "checkpoint_id": written, "thread_id": thread})

    return [write_state]


def _read_history_query(body: Mapping[str, Any], thread_id: str) -> HistoryQuery:
    return HistoryQuery(
        limit=_limit(body),
        before=read_before(body.get("before")),
        checkpoint=read_checkpoint(body, thread_id),
        metadata=mapping(body, "metadata") or {},
        select=read_selection(texts(body, "select", most=MAX_SELECTED)),
    )


def _limit(asked: Mapping[str, Any]) -> int:
    return integer(asked, "limit", default=DEFAULT_ENTRIES, least=1, most=MAX_ENTRIES)


def _written_checkpoint(body: Mapping[str, Any], thread_id: str) -> str | None:
    """`checkpoint_id`, or `checkpoint.checkpoint_id`; a subagent's state is not written."""
    name = read_checkpoint(body, thread_id)
    if name.namespace:
        raise refused("checkpoint.checkpoint_ns", "must be empty: a subagent's state cannot be written")
    given = text(body, "checkpoint_id") or name.checkpoint_id
    if given is not None and name.checkpoint_id not in (None, given):
        raise refused("checkpoint_id", "must be that of `checkpoint`, or be left out")
    return None if given is None else checked_id(given, "checkpoint_id")


def _selected_in_query(request: AnyRequest) -> Sequence[str] | None:
    return request.query_params.getall("select", None)


def _joined(parts: Sequence[bytes]) -> Stream:
    """A JSON array, written part by part: joining them first would copy megabytes on the event loop."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        for place, part in enumerate(parts):
            yield (b"," if place else b"[") + part
        yield b"]" if parts else b"[]"

    return Stream(pieces(), media_type="application/json")
