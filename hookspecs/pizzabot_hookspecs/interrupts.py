"""Interrupts and intents: what a run waits for, and what it was about to do when its process died.

An interrupt is a question that only a person can settle; its row outlives runs, clients and servers, and is decided
once, by compare-and-set (durable-runs rules 9 and 10). An intent says that a tool which must not run twice was about to
run; one that is still open after a crash becomes an interrupt of kind `recovery` (rule 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from pizzabot_hookspecs.wire import JsonValue, Namespace


class InterruptKind(StrEnum):
    """What is asked: to allow a tool call, to answer a question, or what to do after a crash."""

    APPROVAL = "approval"
    INPUT = "input"
    RECOVERY = "recovery"


class InterruptState(StrEnum):
    """Open until it is decided; withdrawn when the turn that asked was stopped: nobody can answer it any more."""

    OPEN = "open"
    DECIDED = "decided"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewInterrupt:
    """A question to store. `payload` is what clients are shown and what an answer is checked against (JSON).

    The id is unique in its thread: a copied thread brings the same ids with it, and its runs must be able to end.

    For `approval`: `action_requests` (name, args, description, args_schema) and `review_configs` (action_name,
    allowed_decisions), one of each. For `input`: `question` and, optionally, `answer_schema` (JSON Schema). For
    `recovery`: `actions` (tool, call_id, namespace) and `choices`.
    """

    interrupt_id: str
    kind: InterruptKind
    payload: Mapping[str, Any]
    namespace: Namespace = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Interrupt:
    """A row of `interrupts`. `answer` is the canonical, checked one; `decided_by` says who decided."""

    interrupt_id: str
    run_id: str
    thread_id: str
    owner: str
    kind: InterruptKind
    payload: Mapping[str, Any]
    namespace: Namespace
    state: InterruptState
    created_at: float
    answer: JsonValue = None
    decided_by: str | None = None
    decided_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """An answer that was checked against the stored interrupt already."""

    interrupt_id: str
    answer: JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """A tool call that was about to run. `call_id` is unique in its run."""

    run_id: str
    call_id: str
    tool: str
    namespace: Namespace
    opened_at: float


class IntentLog(Protocol):
    """What a runtime is handed to announce unrepeatable tool calls, bound to one claimed run."""

    async def open(self, call_id: str, /, *, tool: str, namespace: Namespace) -> None:
        """Stored when it returns; only then may the tool run. Raises `Conflict` `lease_lost`: then it must not."""
        ...

    async def close(self, call_id: str, /) -> None:
        """The call has a result, or is known not to have happened. Closing what is not open does nothing."""
        ...
