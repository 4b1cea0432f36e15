"""The log of a thread as that of its copy: other ids, other numbers, the same conversation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from pizzabot.host.runs.facts import PREFIX
from pizzabot.host.runs.merging import merge_deltas
from pizzabot.host.text import to_json
from pizzabot_hookspecs.storage_backends import Run, StoredEvent

_STATE = "values"
_ARTIFACT = f"{PREFIX}artifact"
_OF_A_TURN = (f"{PREFIX}message", f"{PREFIX}context", _ARTIFACT)
"""Facts without a run that name their turn; a file may be of none, and is every branch's then."""


def copied_events(
    events: Sequence[StoredEvent],
    *,
    thread_id: str,
    run_ids: Mapping[str, str],
    turn_ids: Collection[str],
    state_of: str,
    seqs: dict[int, int] | None = None,
) -> Iterator[StoredEvent]:
    """The events of the runs in `run_ids`, old to new, and what was told of these turns without a run, from 1 on.

    Deltas are merged. Full states are large and go with the run `state_of` alone, from which clients begin. `seqs` is
    filled: old number to new.
    """
    merged = {one.last_seq: one for one in merge_deltas([event for event in events if event.run_id in run_ids])}
    gone = {seq for one in merged.values() for seq in range(one.first_seq, one.last_seq)}
    number = 0
    for event in events:
        if event.seq in gone or not _goes_along(event, run_ids, turn_ids, state_of):
            continue
        number += 1
        if seqs is not None:
            seqs[event.seq] = number
        data = event.data if event.seq not in merged else _merged(merged[event.seq].data, number)
        if event.name is not None and event.name.startswith(PREFIX):
            data = _fact(data, run_ids)
        run_id = None if event.run_id is None else run_ids[event.run_id]
        yield replace(event, seq=number, thread_id=thread_id, run_id=run_id, data=data)


def _goes_along(event: StoredEvent, run_ids: Mapping[str, str], turn_ids: Collection[str], state_of: str) -> bool:
    if event.run_id is not None:
        return event.run_id in run_ids and (event.method != _STATE or event.run_id == state_of)
    if event.name not in _OF_A_TURN:
        return False
    turn_id = json.loads(event.data)["payload"].get("turn_id")
    return turn_id in turn_ids or (turn_id is None and event.name == _ARTIFACT)


def _merged(data: bytes, number: int) -> bytes:
    return to_json({**json.loads(data), "from_seq": number})


def _fact(data: bytes, run_ids: Mapping[str, str]) -> bytes:
    told = json.loads(data)
    payload = told.get("payload")
    if isinstance(payload, dict) and payload.get("run_id") in run_ids:
        payload["run_id"] = run_ids[payload["run_id"]]
        return to_json(told)
    return data


def copied_run(run: Run, *, thread_id: str, owner: str, run_ids: Mapping[str, str]) -> Run:
    """A run of the copy. What it was asked for stays with the first one: nobody sends that again to the copy."""
    options = {key: value for key, value in run.options.items() if key != "resumes"}
    asked = run_ids.get(str(run.options.get("resumes")))
    if asked is not None:
        options["resumes"] = asked
    return replace(
        run,
        run_id=run_ids[run.run_id],
        thread_id=thread_id,
        owner=owner,
        options=options,
        server_id=None,
        lease_until=None,
        first_seq=None,
        idempotency_key=None,
        message_id=None,
    )
