"""What becomes of a turn by its runs: how each stands, and what its last frame closes (wire.md §0 and §4)."""

from __future__ import annotations

from typing import Any

from pizzabot.host.transcript.draft import Draft, OpenTurn, changed
from pizzabot.host.transcript.entries import Entry
from pizzabot.host.transcript.messages import close_message
from pizzabot.host.transcript.requests import withdraw_of_run
from pizzabot.host.transcript.shapes import CLOSED, RunRecord

SUPERSEDED = "SUPERSEDED"
NEEDS_ATTENTION = "NEEDS_ATTENTION"
_TURN_STATUS = {
    "pending": "running",
    "running": "running",
    "cancelling": "running",
    "success": "done",
    "error": "failed",
    "timeout": "failed",
    "interrupted": "waiting",
    "cancelled": "stopped",
    "needs_attention": "attention",
}
_GOING = frozenset({"pending", "running", "cancelling"})
WAITING = ("interrupted", "needs_attention")


def is_going(run: RunRecord) -> bool:
    """Whether frames of the run are still to come: its last fact stands before its last frame."""
    return "closed" not in run or run["status"] in _GOING


def set_run_status(
    draft: Draft, entry: Entry, run: RunRecord, status: str, code: str | None, error: str | None = None
) -> None:
    """Write the status, and what follows for the turn. The run that was heard of last decides how a turn stands."""
    run["rev"], run["status"] = entry.seq, status
    if status in _GOING:
        run.pop("closed", None)
    _set(run, "code", code)
    opened = None if draft.is_ahead(entry, run["turnId"]) else draft.open_turn(run["turnId"])
    if opened is None:
        return
    turn = opened.turn
    turn["rev"] = max(turn["rev"], entry.seq)
    turn["status"] = "superseded" if code == SUPERSEDED else _TURN_STATUS.get(status, turn["status"])
    _set(turn, "code", code)
    _set(turn, "error", error)


def see_lifecycle(draft: Draft, entry: Entry) -> None:
    """The root's `running` and its terminal frame. A run is known by its facts; `running` alone makes no turn."""
    event = entry.data.get("event")
    if entry.run_id is None or entry.namespace:
        return
    if event == "running":
        run = draft.run(entry.run_id)
        if run is not None and entry.seq > run["rev"]:
            set_run_status(draft, entry, run, "running", None)
    elif event in ("completed", "failed", "interrupted"):
        _ends(draft, entry)


def _ends(draft: Draft, entry: Entry) -> None:
    turn_id = draft.turn_id_of(entry, str(entry.run_id))
    run = draft.run(str(entry.run_id))
    if run is None:
        return
    status, code = _ending(entry)
    if run["status"] == "timeout" and status == "error":
        status = "timeout"
    if entry.seq > run["rev"] or run["seq"] == entry.seq:
        run["closed"] = True
        run.setdefault("endedAt", entry.timestamp)
        error = entry.data.get("error")
        set_run_status(draft, entry, run, status, code, error if isinstance(error, str) else None)
    if status not in WAITING:
        withdraw_of_run(draft, entry)
    opened = draft.open_turn(turn_id)
    if opened is not None:
        _close(draft, opened, entry, waits=status in WAITING)


def _close(draft: Draft, opened: OpenTurn, entry: Entry, *, waits: bool) -> None:
    """Nothing is left open by a run that has ended, but for the calls that wait for a person with it."""
    turn = opened.turn
    ahead = {
        scope: draft.is_ahead(entry, turn["id"], scope)
        for scope in {tuple(item["namespace"]) for item in turn["items"]}
        | {tuple(part["namespace"]) for part in (*turn["open"].values(), *turn["calls"].values())}
    }
    if not waits:
        turn["graphs"] = {}
        turn["calls"] = {key: one for key, one in turn["calls"].items() if ahead.get(tuple(one["namespace"]))}
    for key, message in list(turn["open"].items()):
        if not ahead[tuple(message["namespace"])]:
            del turn["open"][key]
            close_message(opened, message, entry, "cut")
    for item in turn["items"]:
        left_open = item["kind"] in ("tool", "subagent", "text", "reasoning") and item["state"] not in CLOSED
        if left_open and not waits and not ahead[tuple(item["namespace"])] and changed(opened, item, entry):
            if item["state"] == "writing":
                item["partial"] = True
            item["state"] = "cut"


def _ending(entry: Entry) -> tuple[str, str | None]:
    """The status that a terminal frame means, and its code (host/runs/terminal.py writes them)."""
    event, code = entry.data["event"], entry.data.get("code")
    code = code if isinstance(code, str) else None
    if event == "failed":
        return ("needs_attention" if code == NEEDS_ATTENTION else "error"), code
    if event == "interrupted":
        return ("interrupted" if code is None else "cancelled"), code
    return ("success" if code is None else "cancelled"), code


def _set(record: Any, key: str, value: str | None) -> None:
    if value is None:
        record.pop(key, None)
    else:
        record[key] = value
