"""Reading a thread's transcript: rows up to their cursor, and the log behind it folded, with what is being said now.

A read is one moment: index, log and rows are read one after another, and rows that have gone on meanwhile make it
begin anew. States of threads that are read again and again are kept, so that a long run is not folded each time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pizzabot.host.ids import checked_id
from pizzabot.host.transcript import Item, State, fold, page, turn_items
from pizzabot.host.transcript.paths import turns_of_page
from pizzabot.host.transcript.rows import state_from_rows, turns_of_events, unsettled_turns, with_rows
from pizzabot.host.transcripts.keeping import EVENTS_AT_ONCE, KEEP_AFTER_EVENTS, entries_of
from pizzabot.host.transcripts.turns import KnownTurn, Place, Tree
from pizzabot_hookspecs import Caller, InvalidRequest, NotFound, Unavailable
from pizzabot_hookspecs.storage_backends import Storage, StoredEvent, TranscriptIndex, TurnRow
from pizzabot_hookspecs.wire import Namespace

MAX_PAGE_TURNS = 100
MAX_PAGE_ITEMS = 200
MAX_KEPT_STATES = 32
"""Threads whose state stays in memory between reads."""
MAX_KEPT_BYTES = 64 * 1024 * 1024
"""Of the rows and events that the kept states were made from; one that is larger alone is not kept."""
FOLDED_ON_THE_LOOP = 100
"""Up to so many events are folded where they are read; more in a thread."""
_TRIES = 5
_TURNS_AT_ONCE = 32
_T = TypeVar("_T")


@dataclass
class _Kept:
    owner: str
    created_at: float
    index_cursor: int
    state: State
    size: int


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A thread at one moment: all turns have their places in `state`, those that events may still touch are whole in
    it, and others are loaded by `TranscriptReader.load`."""

    index: TranscriptIndex
    state: State

    def tree(self) -> Tree:
        """Where every turn stands, in the rows or since."""
        places = {one.turn_id: Place(parent_id=one.parent_id, seq=one.seq, rev=one.rev) for one in self.index.turns}
        for turn_id, turn in self.state["turns"].items():
            places[turn_id] = Place(parent_id=turn["parentId"], seq=turn["seq"], rev=turn["rev"])
        return Tree(head=self.state["head"], places=places)


class Moved(Exception):
    """Rows have gone on while the log was read."""


class TranscriptReader:
    """`page`, `items` and `tool_text` of `pizzabot_hookspecs.host.Transcripts`, and `Turns` for branches.

    `behind` is called with a thread whose log is long behind its rows.
    """

    def __init__(self, storage: Storage, *, behind: Callable[[str], None] = lambda _thread_id: None) -> None:
        self._storage = storage
        self._behind = behind
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def forget(self, thread_id: str) -> None:
        """The thread is gone: one that gets its id later is another (statement 14)."""
        self._kept.pop(thread_id, None)

    async def page(
        self,
        thread_id: str,
        /,
        *,
        limit: int = 20,
        before_seq: int | None = None,
        around_seq: int | None = None,
        head: str | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Mapping[str, Any]:
        _checked_limit(limit, MAX_PAGE_TURNS)
        if before_seq is not None and around_seq is not None:
            raise InvalidRequest(
                "invalid_argument",
                "before_seq and around_seq cannot both be given",
                fields={"around_seq": "must not stand beside before_seq"},
            )

        wanted: dict[str, Any] = {"limit": limit, "before_seq": before_seq, "around_seq": around_seq, "head": head}

        async def made() -> Mapping[str, Any]:
            read = await self.now(thread_id, caller=caller)
            if namespace:
                needed = await self._turn_of_graph(read, thread_id, head, namespace, caller=caller)
            else:
                needed = turns_of_page(read.state, **wanted)
            state = await self.load(read, thread_id, needed, caller=caller)
            return await asyncio.to_thread(page, state, thread_id=thread_id, namespace=list(namespace), **wanted)

        return await self.at_one_moment(made)

    async def items(
        self,
        thread_id: str,
        turn_id: str,
        /,
        *,
        limit: int = 100,
        before_seq: int | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Mapping[str, Any]:
        _checked_limit(limit, MAX_PAGE_ITEMS)

        async def made() -> Mapping[str, Any]:
            read = await self.now(thread_id, caller=caller)
            state = await self.load(read, thread_id, [turn_id], caller=caller)
            return await asyncio.to_thread(
                turn_items, state, turn_id, before_seq=before_seq, limit=limit, namespace=list(namespace)
            )

        return await self.at_one_moment(made)

    async def tool_text(
        self, thread_id: str, call_id: str, part: str, /, *, item_id: str | None = None, caller: Caller
    ) -> str:
        if part not in ("input", "output"):
            raise InvalidRequest(
                "invalid_argument", "a tool call has an input and an output", fields={"part": "input or output"}
            )

        async def made() -> str:
            read = await self.now(thread_id, caller=caller)
            places = (await asyncio.to_thread(read.tree)).places
            newest = sorted(places, key=lambda one: places[one].seq, reverse=True)
            for start in range(0, len(newest), _TURNS_AT_ONCE):
                some = newest[start : start + _TURNS_AT_ONCE]
                state = await self.load(read, thread_id, some, caller=caller)
                for turn_id in some:
                    text = _text_of(state["turns"][turn_id]["items"], call_id, part, item_id)
                    if text is not None:
                        return text
            raise NotFound("no_such_tool_call", f"this thread has no {part} of a tool call {call_id!r}")

        return await self.at_one_moment(made)

    # -- turns, for branches ----------------------------------------------------------------------------------------

    async def known(self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller) -> Mapping[str, KnownTurn]:
        async def made() -> Mapping[str, KnownTurn]:
            read = await self.now(thread_id, caller=caller)
            state = await self.load(read, thread_id, turn_ids, caller=caller)
            return {turn_id: _known(state, turn_id) for turn_id in turn_ids if turn_id in state["turns"]}

        return await self.at_one_moment(made)

    async def tree(self, thread_id: str, /, *, caller: Caller) -> Tree:
        return await asyncio.to_thread((await self.at_one_moment(lambda: self.now(thread_id, caller=caller))).tree)

    # -- one moment -------------------------------------------------------------------------------------------------

    async def now(self, thread_id: str, /, *, caller: Caller) -> Reading:
        """The thread as the log is now. Raises `NotFound` `no_such_thread`."""
        thread = await self._storage.thread(checked_id(thread_id, what="thread_id"), caller=caller)
        if thread is None:
            raise NotFound("no_such_thread", f"there is no thread {thread_id!r}")
        index = await self._storage.transcript_index(thread_id, caller=caller)
        known = self._kept.get(thread_id)
        same = (caller.owner, thread.created_at, index.cursor)
        if known is None or (known.owner, known.created_at, known.index_cursor) != same:
            rows = await self._storage.transcript_turns(thread_id, unsettled_turns(index), caller=caller)
            _check_rows(rows, index.cursor)
            state = await asyncio.to_thread(state_from_rows, rows, index)
            known = _Kept(*same, state, sum(len(row.body) for row in rows))
        state, size = known.state, known.size
        while events := await self._storage.events(
            thread_id, after=state["cursor"], limit=EVENTS_AT_ONCE, caller=caller
        ):
            state = await self._fold_on(state, thread_id, events, index.cursor, caller=caller)
            size += sum(len(event.data) for event in events)
            if len(events) < EVENTS_AT_ONCE:
                break
        self._keep(thread_id, _Kept(*same, state, size))
        if state["cursor"] - index.cursor >= KEEP_AFTER_EVENTS:
            self._behind(thread_id)
        return Reading(index=index, state=state)

    async def _fold_on(
        self, state: State, thread_id: str, events: Sequence[StoredEvent], index_cursor: int, /, *, caller: Caller
    ) -> State:
        """The state after more events; what they touch is loaded first."""
        few = len(events) <= FOLDED_ON_THE_LOOP
        entries = entries_of(events) if few else await asyncio.to_thread(entries_of, events)
        missing = [one for one in turns_of_events(state, entries) if one not in state["turns"]]
        if missing:
            rows = await self._storage.transcript_turns(thread_id, missing, caller=caller)
            _check_rows(rows, index_cursor)
            state = with_rows(state, rows)
        return fold(state, entries) if few else await asyncio.to_thread(fold, state, entries)

    async def load(self, read: Reading, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller) -> State:
        """The state with these turns whole."""
        missing = [turn_id for turn_id in turn_ids if turn_id not in read.state["turns"]]
        if not missing:
            return read.state
        rows = await self._storage.transcript_turns(thread_id, missing, caller=caller)
        _check_rows(rows, read.index.cursor)
        return await asyncio.to_thread(with_rows, read.state, rows)

    async def at_one_moment(self, made: Callable[[], Awaitable[_T]]) -> _T:
        for _ in range(_TRIES):
            try:
                return await made()
            except Moved:
                continue
            except ValueError as error:  # of JSON
                detail = "what is stored of this conversation cannot be read; `pizzabot doctor` says what is damaged"
                raise Unavailable("transcript_damaged", detail) from error
        raise Unavailable("transcript_busy", "the transcript is being written all the time: try again in a moment")

    async def _turn_of_graph(
        self, read: Reading, thread_id: str, head: str | None, namespace: Namespace, *, caller: Caller
    ) -> list[str]:
        """The turn of the path that a subagent works for: the newest that has its namespace."""
        tree = await asyncio.to_thread(read.tree)
        leaf = tree.head if head is None else head
        path = [] if leaf is None else tree.path(leaf)
        wanted = list(namespace)
        for end in range(len(path), 0, -_TURNS_AT_ONCE):
            some = path[max(end - _TURNS_AT_ONCE, 0) : end]
            state = await self.load(read, thread_id, some, caller=caller)
            for turn in (state["turns"][turn_id] for turn_id in reversed(some)):
                parts = (*turn["items"], *turn["open"].values())
                if any(wanted in (part["namespace"], part.get("child")) for part in parts):
                    return [turn["id"]]
        return []

    def _keep(self, thread_id: str, kept: _Kept) -> None:
        self._kept.pop(thread_id, None)
        if kept.size > MAX_KEPT_BYTES:
            return
        self._kept[thread_id] = kept
        while len(self._kept) > MAX_KEPT_STATES or sum(one.size for one in self._kept.values()) > MAX_KEPT_BYTES:
            self._kept.popitem(last=False)


def _check_rows(rows: Sequence[TurnRow], cursor: int) -> None:
    if any(row.rev > cursor for row in rows):
        raise Moved


def _known(state: State, turn_id: str) -> KnownTurn:
    turn = state["turns"][turn_id]
    return KnownTurn(
        turn_id=turn_id,
        parent_id=turn["parentId"],
        status=turn["status"],
        message=turn["message"],
        base=turn["base"],
        end=turn.get("end"),
        run_ids=turn["runs"],
    )


def _text_of(items: Sequence[Item], call_id: str, part: str, item_id: str | None) -> str | None:
    """The text of the newest call with the id, of those whose item is meant."""
    for item in reversed(items):
        if item.get("callId") == call_id and item_id in (None, item["id"]):
            text = item.get(part, item.get("error") if part == "output" else None)
            return text if isinstance(text, str) else None
    return None


def _checked_limit(limit: int, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidRequest(
            "invalid_argument", f"limit must be from 1 to {most}", fields={"limit": f"must be from 1 to {most}"}
        )
