"""Whether the rows of a thread's transcript are what its log folds to."""

from __future__ import annotations

import asyncio
import json

from pizzabot.host.transcript import State, entry_of_event, fold, initial
from pizzabot.host.transcript.rows import rows_of, summary_of
from pizzabot.host.transcripts.keeping import EVENTS_AT_ONCE
from pizzabot_hookspecs import SYSTEM
from pizzabot_hookspecs.storage_backends import Storage, StoredEvent, TurnRow

_ROWS_AT_ONCE = 200


async def fault_of(storage: Storage, thread_id: str) -> str | None:
    """What is wrong with the rows of the thread; None where they are as the log has it, or where there are none."""
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


def _folded(state: State, events: list[StoredEvent]) -> State:
    return fold(state, [entry_of_event(event) for event in events])


def _equal(row: TurnRow, expected: TurnRow) -> bool:
    places = [(one.seq, one.rev, one.parent_id, one.settled) for one in (row, expected)]
    return places[0] == places[1] and json.loads(row.body) == json.loads(expected.body)
