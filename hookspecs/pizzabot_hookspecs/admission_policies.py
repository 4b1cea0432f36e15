"""Kind `admission_policies`: who may start what, asked before anything is stored. All act; the first refusal counts.

A policy that raises something else than a `PizzabotError`, or takes longer than 5 s, refuses (`admission_failed`):
permissions fail closed (durable-runs rule 12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pizzabot_hookspecs.callers import Caller
from pizzabot_hookspecs.offers import Offer, hookspec


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionRequest:
    """A run that somebody wants. `characters` counts the text of its messages, `waiting` the thread's queue."""

    caller: Caller
    thread_id: str
    characters: int
    waiting: int
    model: str | None
    resume: bool = False


class AdmissionPolicy(Protocol):
    async def admit(self, request: AdmissionRequest, /) -> None:
        """Return to allow. Raise `NotPermitted`, `Conflict` or `TooLarge` to refuse, with a code and the way out."""
        ...


@hookspec
def pizzabot_admission_policies() -> list[Offer[AdmissionPolicy]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the policies this plugin has; every one of them is asked."""
