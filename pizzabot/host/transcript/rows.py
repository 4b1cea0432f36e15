"""The transcript as rows: one for each turn, with its runs and requests, and a summary of what belongs to no turn.

A page needs few of them. The places of all turns (`TranscriptIndex`) give its path, its siblings and which rows it
needs; so do events that go on from it:

    light = state_from_rows((), index)
    needed = {*unsettled_turns(index), *turns_of_page(light, limit=20)}
    state = state_from_rows(await storage.transcript_turns(thread_id, [*needed], caller=caller), index)
    page(state, thread_id=thread_id, limit=20)

    needed = {*unsettled_turns(index), *turns_of_events(light, entries)}
    before = state_from_rows(await storage.transcript_turns(thread_id, [*needed], caller=caller), index)
    after = fold(before, entries)
    put_transcript(…, rows_of(after, before), after=before["cursor"], cursor=after["cursor"], summary=summary_of(after))
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pizzabot.host.text import to_json
from pizzabot.host.transcript.entries import Entry
from pizzabot.host.transcript.pages import UNSETTLED
from pizzabot.host.transcript.paths import place_of
from pizzabot.host.transcript.runs import is_going
from pizzabot.host.transcript.shapes import Request, RunRecord, State, Turn, initial
from pizzabot_hookspecs.storage_backends import TranscriptIndex, TurnPlace, TurnRow

_FACTS = ("pizzabot.turn", "pizzabot.run", "pizzabot.head", "pizzabot.message", "pizzabot.context")


def rows_of(state: State, before: State | None = None) -> list[TurnRow]:
    """The rows of the turns that are not as they were in `before`, a state that `state` was folded from; without it,
    of all turns that are loaded. Ascending by `seq`. The `rev` of a row counts what subagents do, too."""
    runs, requests = _by_turn(state["runs"]), _by_turn(state["requests"])
    turns = [state["turns"][turn_id] for turn_id in _changed(state, before) if turn_id in state["turns"]]
    rows = (_row(turn, runs.get(turn["id"], []), requests.get(turn["id"], [])) for turn in turns)
    return sorted(rows, key=lambda row: row.seq)


def summary_of(state: State) -> bytes:
    """JSON of what belongs to no turn: the head, and runs and requests of turns that nothing is known of."""
    runs = [one for one in state["runs"].values() if place_of(state, one["turnId"]) is None]
    requests = [one for one in state["requests"].values() if place_of(state, one["turnId"]) is None]
    return to_json({"head": state["head"], "headSeq": state["headSeq"], "runs": runs, "requests": requests})


def state_from_rows(rows: Iterable[TurnRow], index: TranscriptIndex) -> State:
    """The state at `index.cursor` in which these turns are loaded; of the others it knows the places."""
    state, unloaded = initial(), {place.turn_id: _place(place) for place in index.turns}
    state["cursor"] = index.cursor
    branches = state["branches"]
    for place in index.turns:
        branches.setdefault(place.parent_id or "", []).append(place.turn_id)
    if index.summary:
        summary = json.loads(index.summary)
        state["head"], state["headSeq"] = summary["head"], summary["headSeq"]
        _take(state, summary)
    for row in rows:
        body = json.loads(row.body)
        state["turns"][row.turn_id] = body["turn"]
        unloaded.pop(row.turn_id, None)
        _take(state, body)
    if unloaded:
        state["unloaded"] = unloaded
    return state


def with_rows(state: State, rows: Iterable[TurnRow]) -> State:
    """The same state with more turns loaded; one that it has already stays."""
    more: dict[str, Any] = {name: dict(state[name]) for name in ("turns", "runs", "requests")}
    loaded = cast("State", {**state, **more, "unloaded": dict(state.get("unloaded", {}))})
    for row in rows:
        if row.turn_id not in loaded["turns"]:
            body = json.loads(row.body)
            loaded["turns"][row.turn_id] = body["turn"]
            loaded["unloaded"].pop(row.turn_id, None)
            _take(loaded, body)
    return loaded


def unsettled_turns(index: TranscriptIndex) -> list[str]:
    """The turns without whose rows a state is neither shown nor folded on: what goes on, and what waits."""
    return [place.turn_id for place in index.turns if not place.settled]


def turns_of_events(state: State, entries: Iterable[Entry]) -> list[str]:
    """The turns, loaded or not, that events may change besides the unsettled ones: the head, and those facts name."""
    named = [state["head"]]
    for entry in entries:
        if entry.method == "custom" and entry.data.get("name") in _FACTS:
            payload = entry.data.get("payload")
            named.append(payload.get("turn_id") if isinstance(payload, dict) else None)
    return [turn_id for turn_id in dict.fromkeys(named) if isinstance(turn_id, str) and place_of(state, turn_id)]


def _changed(state: State, before: State | None) -> set[str]:
    """The fold copies what it touches, so what is the same object is as it was."""
    if before is None:
        return set(state["turns"])
    known = before["turns"]
    changed = {turn_id for turn_id, turn in state["turns"].items() if known.get(turn_id) is not turn}
    changed |= {run["turnId"] for run_id, run in state["runs"].items() if before["runs"].get(run_id) is not run}
    asked = before["requests"]
    return changed | {one["turnId"] for key, one in state["requests"].items() if asked.get(key) is not one}


def _row(turn: Turn, runs: list[RunRecord], requests: list[Request]) -> TurnRow:
    goes_on = turn["status"] in UNSETTLED or turn["open"] or any(map(is_going, runs))
    return TurnRow(
        turn_id=turn["id"],
        seq=turn["seq"],
        rev=max((turn["rev"], *(part["rev"] for part in (*turn["items"], *runs, *requests)))),
        parent_id=turn["parentId"],
        settled=not goes_on and all(one["state"] != "open" for one in requests),
        body=to_json({"turn": turn, "runs": runs, "requests": requests}),
    )


def _by_turn(records: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for record in records.values():
        found.setdefault(record["turnId"], []).append(record)
    return found


def _place(place: TurnPlace) -> Any:
    return {"id": place.turn_id, "seq": place.seq, "parentId": place.parent_id}


def _take(state: State, body: Mapping[str, Any]) -> None:
    state["runs"].update((run["runId"], run) for run in body["runs"])
    state["requests"].update((one["interruptId"], one) for one in body["requests"])
