"""`input.respond`: answers to interrupts, checked, decided and turned into the run that goes on, all or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pizzabot.host.ids import checked_run_id, new_run_id
from pizzabot.host.runs.answers import checked_answer
from pizzabot.host.runs.fingerprints import fingerprint
from pizzabot.host.runs.requests import checked_key
from pizzabot.host.text import clean
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.interrupts import Decision, Interrupt, InterruptKind, InterruptState
from pizzabot_hookspecs.storage_backends import Admission, NewRun, Run, Storage
from pizzabot_hookspecs.wire import JsonValue

MAX_RESPONSES = 64
"""Interrupts that one command may answer."""


@dataclass(frozen=True, kw_only=True)
class Inline:
    """What stood beside the id of an interrupt where there was no `response`, as spec/02 §3.2 writes decisions."""

    given: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Responses:
    """What a client answers: pairs of interrupt id and response (or `Inline`), its run id and its key, as they came.

    `message_id` and `fingerprint` are those of the request whose message is the answer: it may be sent again.
    """

    pairs: Sequence[tuple[str, object]]
    run_id: str | None
    idempotency_key: str | None
    message_id: str | None = None
    fingerprint: str | None = None


def parse_responses(params: Mapping[str, Any], *, idempotency_key: str | None) -> Responses:
    """One response or many (wire.md §2). Raises `InvalidRequest` `invalid_argument`."""
    params = clean(params)
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
        pairs=pairs,
        run_id=None if run_id is None else checked_run_id(run_id),
        idempotency_key=checked_key(idempotency_key),
    )


def _inline(entry: Mapping[str, Any]) -> Inline:
    return Inline(given={key: entry[key] for key in ("decisions", "choice") if key in entry})


def _wrong(field: str, expected: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"{field} must be {expected}", fields={field: f"must be {expected}"})


def already_decided(interrupt: Interrupt) -> str:
    from datetime import UTC, datetime

    at = "" if interrupt.decided_at is None else datetime.fromtimestamp(interrupt.decided_at, UTC).isoformat()
    if interrupt.state is InterruptState.WITHDRAWN:
        return f"interrupt {interrupt.interrupt_id!r} was withdrawn at {at}: the turn that asked was stopped"
    return f"interrupt {interrupt.interrupt_id!r} was decided by {interrupt.decided_by or 'somebody'} at {at}"


async def prepare_resume(
    storage: Storage, thread_id: str, responses: Responses, *, caller: Caller
) -> tuple[list[Decision], NewRun]:
    """The checked decisions and the run that goes on with them. Nothing is stored yet.

    Raises `NotFound` `no_such_interrupt`, `Conflict` `already_decided`, and for what is wrong with an answer
    `InvalidRequest` `invalid_decision`, in this order.
    """
    waiting = {found.interrupt_id: found for found in await storage.open_interrupts(thread_id, caller=caller)}
    interrupts: list[Interrupt] = []
    for interrupt_id, _ in responses.pairs:
        interrupt = waiting.get(interrupt_id) or await storage.interrupt(interrupt_id, caller=caller)
        if interrupt is None or interrupt.thread_id != thread_id:
            raise NotFound(
                "no_such_interrupt", f"nothing with the id {interrupt_id!r} waits for an answer on this thread"
            )
        if interrupt.state is not InterruptState.OPEN:
            raise Conflict("already_decided", already_decided(interrupt))
        interrupts.append(interrupt)
    many = len(interrupts) > 1
    decisions = [
        Decision(interrupt_id=interrupt.interrupt_id, answer=_answer(interrupt, response, field=_field(number, many)))
        for number, (interrupt, (_, response)) in enumerate(zip(interrupts, responses.pairs, strict=True))
    ]
    if many and any(interrupt.kind is InterruptKind.RECOVERY for interrupt in interrupts):
        raise _wrong("responses", "one response: a recovery is decided alone")
    return decisions, await _resume_of(storage, interrupts[0], decisions, responses, caller=caller)


def _field(number: int, many: bool) -> str:  # noqa: FBT001 - one of a list, or alone
    return f"responses.{number}.response" if many else "response"


def _answer(interrupt: Interrupt, response: object, *, field: str) -> JsonValue:
    """The canonical answer; raises `InvalidRequest` `invalid_decision`. A question is answered by a `response` only."""
    if not isinstance(response, Inline):
        return checked_answer(interrupt, response, field=field)
    if not response.given or interrupt.kind is InterruptKind.INPUT:
        raise InvalidRequest("invalid_decision", f"{field} is missing: it is the answer", fields={field: "is missing"})
    return checked_answer(interrupt, response.given, field=field)


async def known_resume(storage: Storage, thread_id: str, responses: Responses, *, caller: Caller) -> Admission | None:
    """The run that these very answers admitted before, for a client whose reply was lost; None for new ones.

    Raises `Conflict` `idempotency_mismatch` where its run id, key or message id is that of another request.
    """
    if responses.run_id is None and responses.idempotency_key is None and responses.message_id is None:
        return None
    answers = {
        interrupt_id: await _answer_as_it_was(storage, interrupt_id, response, caller=caller)
        for interrupt_id, response in responses.pairs
    }
    return await storage.known_request(_new_run(thread_id, responses, answers, given={}, options={}), caller=caller)


async def _answer_as_it_was(storage: Storage, interrupt_id: str, response: object, *, caller: Caller) -> object:
    """The canonical answer to what may be decided by now; of an answer that was never taken, what came."""
    interrupt = await storage.interrupt(interrupt_id, caller=caller)
    with contextlib.suppress(InvalidRequest):
        if interrupt is not None:
            return _answer(interrupt, response, field="response")
    return None if isinstance(response, Inline) else response


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
    return _new_run(first.thread_id, responses, answers, given=given, options=options)


def _new_run(
    thread_id: str,
    responses: Responses,
    answers: Mapping[str, object],
    *,
    given: Mapping[str, Any],
    options: Mapping[str, Any],
) -> NewRun:
    return NewRun(
        run_id=responses.run_id or new_run_id(),
        thread_id=thread_id,
        input=given,
        options=options,
        fingerprint=responses.fingerprint or fingerprint(thread=thread_id, answers=answers),
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
