"""Whether a thread's log is whole, its transcript rows are what it folds to, and the model's memory is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from pizzabot.host.transcript import State, entry_of_event, fold, initial
from pizzabot.host.transcript.rows import rows_of, summary_of
from pizzabot.host.transcripts.keeping import EVENTS_AT_ONCE
from pizzabot_hookspecs import SYSTEM
from pizzabot_hookspecs.storage_backends import Storage, StoredEvent, Thread, TurnRow

_ROWS_AT_ONCE = 200


async def fault_of_log(storage: Storage, thread: Thread) -> str | None:
    """What is wrong with the log itself, from which nothing can be made anew then; None where it is whole."""
    try:
        state, reached = initial(), 0
        while events := await storage.events(thread.thread_id, after=reached, limit=EVENTS_AT_ONCE, caller=SYSTEM):
            if (gap := await asyncio.to_thread(_gap, events, reached)) is not None:
                return f"the log has a gap before event {gap}"
            state = await asyncio.to_thread(_folded, state, events)
            reached = events[-1].seq
        if reached != thread.next_seq - 1:
            return f"the log ends at event {reached}, the thread's next one would be {thread.next_seq}"
        return await _fault_of_memory(storage, thread, state)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one thread, the others are looked at
        return f"the log cannot be read ({type(error).__name__}: {' '.join(str(error).split())[:200]})"


async def fault_of_rows(storage: Storage, thread_id: str) -> str | None:
    """What is wrong with the rows; None where they are as the log has it, or where there are none."""
    try:
        return await _fault_of_rows(storage, thread_id)
    except Exception as error:  # noqa: BLE001 - as above
        return f"the rows cannot be read ({type(error).__name__}: {' '.join(str(error).split())[:200]})"


async def _fault_of_memory(storage: Storage, thread: Thread, state: State) -> str | None:
    if not any(turn.get("end") for turn in state["turns"].values()):
        return None
    saver = await storage.checkpointer()
    config = {"configurable": {"thread_id": thread.thread_id, "checkpoint_ns": ""}}
    if await saver.aget_tuple(config) is None:  # type: ignore[arg-type]
        return "the model's memory of it is gone: it can be read and exported, and the model knows nothing of it"
    return None


async def _fault_of_rows(storage: Storage, thread_id: str) -> str | None:
    index = await storage.transcript_index(thread_id, caller=SYSTEM)
    bounds = await storage.log_bounds(thread_id, caller=SYSTEM)
    if index.cursor > bounds.last_seq:
        return f"the rows go to event {index.cursor}, the log ends at {bounds.last_seq}"
    state = initial()
    while state["cursor"] < index.cursor:
        events = await storage.events(thread_id, after=state["cursor"], limit=EVENTS_AT_ONCE, caller=SYSTEM)
        wanted = [event for event in events if event.seq <= index.cursor]
        if not wanted:
            return f"the log has no event {index.cursor}, up to which there are rows"
        state = await asyncio.to_thread(_folded, state, wanted)
    expected = {row.turn_id: row for row in await asyncio.to_thread(rows_of, state)}
    if index.cursor and json.loads(index.summary or b"{}") != json.loads(summary_of(state)):
        return "the head is not that of the log"
    if missing := expected.keys() ^ {place.turn_id for place in index.turns}:
        return f"{len(missing)} turns are not in both, among them {min(missing)!r}"
    ids = list(expected)
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        for row in await storage.transcript_turns(thread_id, ids[start : start + _ROWS_AT_ONCE], caller=SYSTEM):
            if not _equal(row, expected[row.turn_id]):
                return f"turn {row.turn_id!r} is not as the log has it"
    return None


def _gap(events: Sequence[StoredEvent], before: int) -> int | None:
    """The first event whose number does not follow. A merged delta stands for those from `from_seq` on."""
    for event in events:
        if event.seq != before + 1:
            merged = json.loads(event.data).get("from_seq") if event.method == "messages" else None
            if merged != before + 1:
                return event.seq
        before = event.seq
    return None


def _folded(state: State, events: Sequence[StoredEvent]) -> State:
    return fold(state, [entry_of_event(event) for event in events])


def _equal(row: TurnRow, expected: TurnRow) -> bool:
    places = [(one.seq, one.rev, one.parent_id, one.settled) for one in (row, expected)]
    return places[0] == places[1] and json.loads(row.body) == json.loads(expected.body)
