"""What the trail says of an answer: one of a few known words, never a text that somebody wrote."""

from __future__ import annotations

from collections.abc import Mapping

from pizzabot_hookspecs.agent_tools import DECISIONS
from pizzabot_hookspecs.interrupts import InterruptKind
from pizzabot_hookspecs.wire import JsonValue

CHOICES = frozenset({"retry", "skip", "stop"})
"""What a person can choose after a crash."""


def verdict_of(kind: InterruptKind | None, answer: JsonValue) -> str | None:
    """`approve`, `edit`, `reject`, `respond`; `retry`, `skip`, `stop`. None for a question: its answer is a text.

    Of several decisions the distinct ones, joined by commas. What is not one of these words is left out.
    """
    if not isinstance(answer, Mapping):
        return None
    if kind is InterruptKind.APPROVAL:
        decisions = answer.get("decisions")
        given = decisions if isinstance(decisions, list) else []
        words = {word for one in given if isinstance(one, Mapping) and isinstance(word := one.get("type"), str)}
        return ",".join(sorted(words & DECISIONS)) or None
    if kind is InterruptKind.RECOVERY:
        choice = answer.get("choice")
        return choice if isinstance(choice, str) and choice in CHOICES else None
    return None
