"""What a crash left behind that only a person can settle: a tool was about to run, and nobody knows whether it did.

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
    "This call was under way when the server stopped; whether it happened is not known. "
    "The person chose not to run it again. Go on without its result."
)


def recovery_interrupt(intents: Sequence[Intent]) -> NewInterrupt:
    """The question about the calls of one run that have no result."""
    actions: list[dict[str, Any]] = [
        {"tool": intent.tool, "call_id": intent.call_id, "namespace": list(intent.namespace)} for intent in intents
    ]
    return NewInterrupt(
        interrupt_id=f"recovery-{uuid7()}",
        kind=InterruptKind.RECOVERY,
        payload={"actions": actions, "choices": list(RECOVERY_CHOICES), "reason": reason(intents)},
    )


def reason(intents: Sequence[Intent]) -> str:
    tools = ", ".join(sorted({intent.tool for intent in intents}))
    return f"the server stopped while {tools} was running, so it may or may not have happened: retry, skip or stop"
