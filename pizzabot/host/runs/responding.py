"""`input.respond`: answers to interrupts, checked, decided and turned into the run that goes on, all or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pizzabot.host.ids import checked_run_id, new_run_id
from pizzabot.host.runs.answers import checked_answer
from pizzabot.host.text import to_json
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.interrupts import Decision, Interrupt, InterruptKind, InterruptState
from pizzabot_hookspecs.storage_backends import NewRun, Run, Storage
from pizzabot_hookspecs.wire import JsonValue

MAX_RESPONSES = 64
"""Interrupts that one command may answer."""


@dataclass(frozen=True, kw_only=True)
class Responses:
    """What a client answers: pairs of interrupt id and response, its run id and its key, as they came."""

    pairs: Sequence[tuple[str, object]]
    run_id: str | None
    idempotency_key: str | None
    message_id: str | None = None


def parse_responses(params: Mapping[str, Any], *, idempotency_key: str | None) -> Responses:
    """One response or many (wire.md §2). Raises `InvalidRequest` `invalid_argument`."""
    for field in ("update", "goto"):
        if params.get(field) is not None:
            raise InvalidRequest(
                "not_supported", f"{field} cannot be given with an answer", fields={field: "not supported"}
            )
    many = params.get("responses")
    entries = [params] if many is None else many
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_RESPONSES:
        raise _wrong("responses", f"a list of 1 to {MAX_RESPONSES} responses")
    pairs: list[tuple[str, object]] = []
    for number, entry in enumerate(entries):
        field = "" if many is None else f"responses.{number}."
        if not isinstance(entry, Mapping):
            raise _wrong(f"responses.{number}", "an object")
        interrupt_id = entry.get("interrupt_id", entry.get("interruptId"))
        if not isinstance(interrupt_id, str) or not interrupt_id:
            raise _wrong(f"{field}interrupt_id", "the id of an open interrupt")
        pairs.append((interrupt_id, entry["response"] if "response" in entry else _inline(entry)))
    if len({interrupt_id for interrupt_id, _ in pairs}) != len(pairs):
        raise _wrong("responses", "answers to different interrupts")
    run_id = params.get("run_id")
    return Responses(
        pairs=pairs, run_id=None if run_id is None else checked_run_id(run_id), idempotency_key=idempotency_key
    )


def _inline(entry: Mapping[str, Any]) -> object:
    """A response whose decisions stand beside the id, as spec/02 §3.2 writes it."""
    return {key: entry[key] for key in ("decisions", "choice") if key in entry}


def _wrong(field: str, expected: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"{field} must be {expected}", fields={field: f"must be {expected}"})


async def open_interrupt(storage: Storage, thread_id: str, interrupt_id: str, *, caller: Caller) -> Interrupt:
    """The open interrupt; raises `NotFound` `no_such_interrupt` or `Conflict` `already_decided`."""
    waiting = await storage.open_interrupts(thread_id, caller=caller)
    known = next((found for found in waiting if found.interrupt_id == interrupt_id), None)
    interrupt = known or await storage.interrupt(interrupt_id, caller=caller)
    if interrupt is None or interrupt.thread_id != thread_id:
        raise NotFound("no_such_interrupt", f"nothing with the id {interrupt_id!r} waits for an answer on this thread")
    if interrupt.state is not InterruptState.OPEN:
        raise Conflict("already_decided", already_decided(interrupt))
    return interrupt


def already_decided(interrupt: Interrupt) -> str:
    from datetime import UTC, datetime

    at = "" if interrupt.decided_at is None else datetime.fromtimestamp(interrupt.decided_at, UTC).isoformat()
    if interrupt.state is InterruptState.WITHDRAWN:
        return f"interrupt {interrupt.interrupt_id!r} was withdrawn at {at}: the turn that asked was stopped"
    return f"interrupt {interrupt.interrupt_id!r} was decided by {interrupt.decided_by or 'somebody'} at {at}"


async def prepare_resume(
    storage: Storage, thread_id: str, responses: Responses, *, caller: Caller
) -> tuple[list[Decision], NewRun]:
    """The checked decisions and the run that goes on with them. Nothing is stored yet."""
    many = len(responses.pairs) > 1
    decisions: list[Decision] = []
    interrupts: list[Interrupt] = []
    for number, (interrupt_id, response) in enumerate(responses.pairs):
        interrupt = await open_interrupt(storage, thread_id, interrupt_id, caller=caller)
        field = f"responses.{number}.response" if many else "response"
        decisions.append(Decision(interrupt_id=interrupt_id, answer=checked_answer(interrupt, response, field=field)))
        interrupts.append(interrupt)
    if many and any(interrupt.kind is InterruptKind.RECOVERY for interrupt in interrupts):
        raise _wrong("responses", "one response: a recovery is decided alone")
    return decisions, await _resume_of(storage, interrupts[0], decisions, responses, caller=caller)


async def _resume_of(
    storage: Storage, first: Interrupt, decisions: Sequence[Decision], responses: Responses, *, caller: Caller
) -> NewRun:
    waited = await storage.run(first.run_id, caller=caller)
    answers = {decision.interrupt_id: decision.answer for decision in decisions}
    options: dict[str, Any] = {
        "model": None if waited is None else waited.options.get("model"),
        "config": {},
        "resumes": first.run_id,
    }
    if first.kind is InterruptKind.RECOVERY:
        options["recovery"] = _recovery_of(first, decisions[0])
        given = {} if waited is None else dict(waited.input)
        kept = {} if waited is None else {key: waited.options[key] for key in ("config",) if key in waited.options}
        options |= kept
    else:
        given = {"answers": answers}
    return NewRun(
        run_id=responses.run_id or new_run_id(),
        thread_id=first.thread_id,
        input=given,
        options=options,
        fingerprint=hashlib.sha256(to_json({"thread": first.thread_id, "answers": answers})).hexdigest(),
        idempotency_key=responses.idempotency_key,
        message_id=responses.message_id,
    )


def _recovery_of(interrupt: Interrupt, decision: Decision) -> dict[str, Any]:
    answer = decision.answer if isinstance(decision.answer, dict) else {}
    calls = [str(action.get("call_id")) for action in interrupt.payload.get("actions") or ()]
    return {"choice": answer.get("choice"), "calls": calls, "interrupt_id": interrupt.interrupt_id}


def answers_of(run: Run) -> Mapping[str, JsonValue]:
    """The decided interrupts that a run goes on with; for a recovery, the id of its question and the choice alone."""
    recovery = run.options.get("recovery")
    if recovery is not None:
        return {recovery["interrupt_id"]: recovery["choice"]}
    return run.input.get("answers") or {}
