"""Reading a thread's earlier states in pages, encoded one by one: a long history holds up nobody (wire.md §8.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from pizzabot_builtin_plugins.http_server.body_fields import same_json
from pizzabot_builtin_plugins.http_server.checkpoint_names import CheckpointName, selected
from pizzabot_builtin_plugins.http_server.json_bodies import encode
from pizzabot_hookspecs import Caller, NotFound, TooLarge
from pizzabot_hookspecs.host import Threads
from pizzabot_hookspecs.wire import Namespace, ThreadState

MAX_ENTRIES = 1_000
"""States in one answer, and states that are looked at for it."""
MAX_HISTORY_BYTES = 64 * 1024 * 1024
PAGE_ENTRIES = 20
"""States that are held as objects at once: each may be a megabyte."""


@dataclass(frozen=True, kw_only=True)
class HistoryQuery:
    """What is asked for. `metadata`: only states whose metadata has these values."""

    limit: int = 10
    before: str | None = None
    checkpoint: CheckpointName = field(default_factory=CheckpointName)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    select: Sequence[str] | None = None


async def encoded_history(threads: Threads, thread_id: str, query: HistoryQuery, caller: Caller) -> list[bytes]:
    """The states as JSON, newest first. Raises as `Threads.history`, and `TooLarge` `history_too_large`."""
    parts: list[bytes] = []
    size = 0
    async with aclosing(_states(threads, thread_id, query, caller)) as states:
        async for state in states:
            parts.append(encode(selected(state, query.select)))
            size += len(parts[-1])
            if size > MAX_HISTORY_BYTES:
                detail = f"{len(parts)} states have more than {MAX_HISTORY_BYTES} bytes; ask for fewer, or use `select`"
                raise TooLarge("history_too_large", detail)
            if len(parts) == query.limit:
                break
            await asyncio.sleep(0)
    return parts


async def find_state(threads: Threads, thread_id: str, name: CheckpointName, caller: Caller) -> ThreadState:
    """One state, of the thread or of a subagent. Raises `NotFound` `no_such_checkpoint`."""
    if not name.namespace:
        return await threads.state(thread_id, checkpoint_id=name.checkpoint_id, caller=caller)
    query = HistoryQuery(limit=1 if name.checkpoint_id is None else MAX_ENTRIES, checkpoint=name)
    async with aclosing(_states(threads, thread_id, query, caller)) as states:
        found = await anext(states, None)
    if found is not None:
        return found
    raise NotFound("no_such_checkpoint", f"thread {thread_id!r} has no such checkpoint in {'|'.join(name.namespace)!r}")


async def _states(
    threads: Threads, thread_id: str, query: HistoryQuery, caller: Caller
) -> AsyncGenerator[ThreadState, None]:
    """Those that fit, of the newest `MAX_ENTRIES` after `before`."""
    before, seen, namespace = query.before, 0, query.checkpoint.namespace
    step = min(query.limit, PAGE_ENTRIES) if _takes_all(query) else PAGE_ENTRIES
    while seen < MAX_ENTRIES:
        page = await _page(threads, thread_id, step, before, namespace, caller)
        for state in page:
            if _fits(state, query):
                yield state
        seen += len(page)
        before = _id_of(page[-1]) if page else None
        if len(page) < step or before is None:
            return


async def _page(
    threads: Threads, thread_id: str, limit: int, before: str | None, namespace: Namespace, caller: Caller
) -> Sequence[ThreadState]:
    return await threads.history(thread_id, limit=limit, before=before, namespace=namespace, caller=caller)


def _takes_all(query: HistoryQuery) -> bool:
    return not query.metadata and query.checkpoint.checkpoint_id is None


def _fits(state: ThreadState, query: HistoryQuery) -> bool:
    if query.checkpoint.checkpoint_id not in (None, _id_of(state)):
        return False
    metadata = state["metadata"]
    return all(key in metadata and same_json(metadata[key], value) for key, value in query.metadata.items())


def _id_of(state: ThreadState) -> str | None:
    return state["checkpoint"]["checkpoint_id"] if state["checkpoint"] is not None else None
