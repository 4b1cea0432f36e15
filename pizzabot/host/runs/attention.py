"""What only a person can settle: a tool was about to run, no result was kept, and nobody knows whether it did.

A crash leaves that behind, and a storage that fails while a tool is at work.
The run ends with root `failed`, code NEEDS_ATTENTION, and one host-made interrupt of kind `recovery` with three choices
(durable-runs rule 7): retry runs the call again, skip goes on without it, stop leaves it and ends the turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pizzabot.host.ids import uuid7
from pizzabot.host.runs.answers import RECOVERY_CHOICES
from pizzabot_hookspecs.interrupts import Intent, InterruptKind, NewInterrupt

SKIPPED = (
    "This call was under way, and no result of it was kept: whether it happened is not known. "
    "The person chose not to run it again."
)


def recovery_interrupt(intents: Sequence[Intent], why: str) -> NewInterrupt:
    """The question about a run that cannot go on by itself, and its calls without a result; there may be none."""
    actions: list[dict[str, Any]] = [
        {"tool": intent.tool, "call_id": intent.call_id, "namespace": list(intent.namespace)} for intent in intents
    ]
    return NewInterrupt(
        interrupt_id=f"recovery-{uuid7()}",
        kind=InterruptKind.RECOVERY,
        payload={"actions": actions, "choices": list(RECOVERY_CHOICES), "reason": why},
    )


def reason(intents: Sequence[Intent], *, attempts: int | None = None) -> str:
    """Why a run cannot go on; `attempts` where the server died with it so many times."""
    if not intents:
        return f"the server was started {attempts} times with this run and did not survive it: retry, skip or stop"
    tools = ", ".join(sorted({intent.tool for intent in intents}))
    # A crash comes here, and a storage that failed: this is what is known of either.
    return f"no result of {tools} was kept, so it may or may not have happened: retry, skip or stop"
