"""`POST /threads/search` and `/threads/count`: what LangGraph's clients ask of a list of threads, checked and done.

The host knows pages by newest activity and by status. Everything else is looked for in the newest `MAX_LOOKED_AT`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pizzabot_builtin_plugins.http_server.body_fields import (
    integer,
    mapping,
    not_there,
    one_of,
    same_json,
    selection,
    texts,
)
from pizzabot_builtin_plugins.http_server.rows import THREAD_FIELDS
from pizzabot_builtin_plugins.http_server.services import checked_id
from pizzabot_hookspecs import Caller, NotFound
from pizzabot_hookspecs.host import Threads
from pizzabot_hookspecs.storage_backends import Thread, ThreadStatus

MAX_LOOKED_AT = 10_000
"""Threads that one search or count looks at, the newest ones."""
MAX_FOUND = 1_000
"""Threads in the answer of one search."""
MAX_IDS = 200
MAX_PAGE = 200
"""Threads that the host gives at once."""
DEFAULT_FOUND = 10

STATUSES = tuple(ThreadStatus)
SORTS = ("thread_id", "status", "created_at", "updated_at", "state_updated_at")
ORDERS = ("asc", "desc")
_ASSISTANT_KEYS = frozenset({"graph_id", "assistant_id"})

SEARCH_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "default": DEFAULT_FOUND},
        "offset": {"type": "integer", "minimum": 0, "maximum": MAX_LOOKED_AT},
        "status": {"type": "string", "enum": list(STATUSES)},
        "metadata": {"type": "object"},
        "ids": {"type": "array", "maxItems": MAX_IDS, "items": {"type": "string"}},
        "sort_by": {"type": "string", "enum": list(SORTS)},
        "sort_order": {"type": "string", "enum": list(ORDERS)},
        "select": {"type": "array", "items": {"type": "string", "enum": list(THREAD_FIELDS)}},
    },
}
COUNT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"status": {"type": "string", "enum": list(STATUSES)}, "metadata": {"type": "object"}},
}


@dataclass(frozen=True, kw_only=True)
class ThreadQuery:
    limit: int = DEFAULT_FOUND
    offset: int = 0
    status: ThreadStatus | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ids: Sequence[str] | None = None
    sort_by: str | None = None
    ascending: bool = False
    select: Sequence[str] | None = None

    @property
    def is_a_page(self) -> bool:
        """Whether the host's own order and filter are enough."""
        return not self.metadata and self.ids is None and self.sort_by is None and not self.ascending


def read_query(body: Mapping[str, Any]) -> ThreadQuery:
    """Raises `InvalidRequest` `invalid_request` with the field; keys that are not known are ignored."""
    not_there(body, "values", "extract")
    ids, status = texts(body, "ids", most=MAX_IDS), one_of(body, "status", STATUSES)
    return ThreadQuery(
        limit=integer(body, "limit", default=DEFAULT_FOUND, least=1, most=MAX_FOUND),
        offset=integer(body, "offset", default=0, least=0, most=MAX_LOOKED_AT),
        status=None if status is None else ThreadStatus(status),
        metadata=mapping(body, "metadata") or {},
        ids=None if ids is None else [checked_id(found, "ids") for found in dict.fromkeys(ids)],
        sort_by=one_of(body, "sort_by", SORTS),
        ascending=one_of(body, "sort_order", ORDERS) == "asc",
        select=selection(
            texts(body, "select", most=len(THREAD_FIELDS)), THREAD_FIELDS.__contains__, valid=", ".join(THREAD_FIELDS)
        ),
    )


async def find(threads: Threads, query: ThreadQuery, caller: Caller) -> Sequence[Thread]:
    """The threads of the answer, in its order."""
    if query.is_a_page:
        return await _newest(threads, query, query.offset, query.limit, caller)
    found = await matching(threads, query, caller)
    if query.sort_by is not None or query.ascending:
        found = sorted(found, key=lambda thread: _sort_key(thread, query.sort_by), reverse=not query.ascending)
    return found[query.offset : query.offset + query.limit]


async def matching(threads: Threads, query: ThreadQuery, caller: Caller) -> list[Thread]:
    """Every thread that fits, newest activity first, of the newest `MAX_LOOKED_AT`."""
    if query.ids is not None:
        rows = await _named(threads, query.ids, caller)
        rows = [row for row in rows if query.status in (None, row.status)]
    else:
        rows = await _newest(threads, query, 0, MAX_LOOKED_AT, caller)
    return [row for row in rows if _fits(row.metadata, query.metadata)]


async def _newest(threads: Threads, query: ThreadQuery, offset: int, limit: int, caller: Caller) -> list[Thread]:
    """Page by page. A thread that became newer meanwhile moves the others down: it is taken once."""
    found: dict[str, Thread] = {}
    while len(found) < limit:
        step = min(limit - len(found), MAX_PAGE)
        page = await threads.page(limit=step, offset=offset, status=query.status, caller=caller)
        found.update((row.thread_id, row) for row in page if row.thread_id not in found)
        offset += len(page)
        if len(page) < step:
            break
    return list(found.values())


async def _named(threads: Threads, ids: Sequence[str], caller: Caller) -> list[Thread]:
    found: list[Thread] = []
    for thread_id in ids:
        try:
            found.append(await threads.get(thread_id, caller=caller))
        except NotFound:
            continue
    return sorted(found, key=lambda thread: thread.last_activity_at, reverse=True)


def _fits(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the metadata has what is wanted. Every thread is the one assistant's, whether it says so or not."""
    return all(
        _contains(metadata[key], value) if key in metadata else key in _ASSISTANT_KEYS for key, value in wanted.items()
    )


def _contains(found: object, wanted: object) -> bool:
    """Objects may have more keys than are wanted, at every level; everything else is equal."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return all(key in found and _contains(found[key], value) for key, value in wanted.items())
    return same_json(found, wanted)


def _sort_key(thread: Thread, sort_by: str | None) -> tuple[Any, ...]:
    if sort_by == "thread_id":
        return (thread.thread_id,)
    if sort_by == "status":
        return thread.status, thread.last_activity_at
    return (thread.created_at if sort_by == "created_at" else thread.last_activity_at,)
