"""What the parts of the interrupt contract share: runs that end with questions, and calls that are announced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pizzabot.testing.run_store_contract.base import SERVER, new_run, words
from pizzabot_hookspecs import LOCAL, Caller
from pizzabot_hookspecs.interrupts import Decision, Interrupt, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import (
    Admission,
    EventLog,
    InterruptStorage,
    Run,
    RunStatus,
    RunStorage,
)

PAYLOAD: dict[str, Any] = {
    "action_requests": [{"name": "send_mail", "args": {"to": "anna@example.org", "text": "čau 🫖", "n": 1.5}}],
    "review_configs": [{"action_name": "send_mail", "allowed_decisions": ["approve", "reject"]}],
}
ANSWER: dict[str, Any] = {"decisions": [{"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": None}}}]}


class InterruptStore(RunStorage, InterruptStorage, EventLog, Protocol):
    """What the interrupt suite needs of a storage."""


def question(interrupt_id: str, kind: InterruptKind = InterruptKind.APPROVAL) -> NewInterrupt:
    return NewInterrupt(interrupt_id=interrupt_id, kind=kind, payload=PAYLOAD, namespace=("tools:1", "model:ž"))


def answer(*interrupt_ids: str, value: Any = ANSWER) -> list[Decision]:
    return [Decision(interrupt_id=interrupt_id, answer=value) for interrupt_id in interrupt_ids]


async def waiting(
    storage: RunStorage, run_id: str, *interrupt_ids: str, thread_id: str = "t", caller: Caller = LOCAL
) -> Run:
    """A run that was admitted and claimed and has ended with these interrupts."""
    await storage.admit_run(new_run(run_id, thread_id), caller=caller)
    run = await storage.claim_run(run_id, server_id=SERVER, caller=caller)
    assert run is not None, f"{run_id} could not be claimed on an idle thread"
    await ended_waiting(storage, run, *interrupt_ids, caller=caller)
    return run


async def ended_waiting(storage: RunStorage, run: Run, *interrupt_ids: str, caller: Caller = LOCAL) -> None:
    await storage.finish_run(
        run.run_id,
        run.epoch,
        words("asks"),
        status=RunStatus.INTERRUPTED,
        interrupts=[question(interrupt_id) for interrupt_id in interrupt_ids],
        caller=caller,
    )


async def decided(
    storage: InterruptStorage, run_id: str, *interrupt_ids: str, by: str = "phone", caller: Caller = LOCAL
) -> Admission:
    return await storage.decide(answer(*interrupt_ids), new_run(run_id), by=by, caller=caller)


async def known(storage: InterruptStorage, interrupt_id: str, *, caller: Caller = LOCAL) -> Interrupt:
    interrupt = await storage.interrupt(interrupt_id, caller=caller)
    assert interrupt is not None, f"there is no interrupt {interrupt_id}"
    return interrupt


async def open_ids(storage: InterruptStorage, thread_id: str | None = "t", *, caller: Caller = LOCAL) -> list[str]:
    found: Sequence[Interrupt] = await storage.open_interrupts(thread_id, caller=caller)
    return [interrupt.interrupt_id for interrupt in found]


async def open_intent(storage: InterruptStorage, run: Run, call_id: str, *, epoch: int | None = None) -> None:
    await storage.open_intent(
        run.run_id,
        run.epoch if epoch is None else epoch,
        call_id=call_id,
        tool="send_mail",
        namespace=("tools:1",),
        caller=Caller(owner=run.owner),
    )


async def intent_ids(storage: InterruptStorage, run_id: str, *, caller: Caller = LOCAL) -> list[str]:
    return [intent.call_id for intent in await storage.open_intents(run_id, caller=caller)]
