"""`run.start` beside a turn, or from a checkpoint: on which branch the new turn stands, and where it begins.

An edit is a sibling of the turn with another text, a new answer one with the same text; both begin on what the turn
began on. Stock clients name a checkpoint instead, and the turn that it is of is looked up (spec/12 §1.1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from pizzabot.host.ids import uuid7
from pizzabot.host.runs.requests import RunRequest
from pizzabot.host.runs.turns import first_fact_of, head_of
from pizzabot.host.transcripts.turns import Turns, kept, settled_turn
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.agent_runtimes import AgentRuntime
from pizzabot_hookspecs.storage_backends import Storage
from pizzabot_hookspecs.wire import Message, ThreadState


class Branching:
    """Completes requests that branch off; `turn` of the result says where the run's turn stands."""

    def __init__(self, storage: Storage, turns: Turns, runtime: Callable[[], Awaitable[AgentRuntime]]) -> None:
        self._storage = storage
        self._turns = turns
        self._runtime = runtime

    async def beside(self, request: RunRequest, turn_id: str, *, caller: Caller) -> RunRequest:
        """A sibling of the turn; without messages, with the same ones under a new id.

        Raises `NotFound` `no_such_turn`; `Conflict` `turn_not_settled`, `checkpoint_gone`; `InvalidRequest`
        `not_supported`.
        """
        turn = await settled_turn(self._turns, request.thread_id, turn_id, caller=caller)
        _, base = await kept(await self._runtime(), request.thread_id, turn.base, caller=caller)
        messages = request.messages or _said_again(turn.message)
        planned = {
            "turn_id": messages[-1].id if messages else uuid7(),
            "parent_id": turn.parent_id,
            "source": "user",
        }
        return replace(request, messages=messages, config={**request.config, "checkpoint_id": base}, turn=planned)

    async def behind(self, request: RunRequest, state: ThreadState, *, caller: Caller) -> RunRequest:
        """Where a checkpoint of `state` belongs: behind its turn, or, in place of what followed, beside it."""
        run_id = state["metadata"].get("run_id")
        run = await self._storage.run(run_id, caller=caller) if isinstance(run_id, str) else None
        of_thread = run if run is not None and run.thread_id == request.thread_id else None
        fact = await first_fact_of(self._storage, of_thread)
        planned: dict[str, Any] = {"turn_id": uuid7(), "source": "fork"}
        if not fact:
            planned["parent_id"] = await head_of(self._storage, request.thread_id)
        elif not request.messages or state["metadata"].get("source") == "input":
            planned["parent_id"] = fact.get("parent_id")
        else:
            planned["parent_id"] = fact.get("turn_id")
        if fact and not request.messages and (said := _message(fact.get("message"))) is not None:
            planned["message"] = said.to_json()
        return replace(request, turn=planned)


def _said_again(message: Mapping[str, Any] | None) -> tuple[Message, ...]:
    """The same words as a new message. What it referred to goes with an attachment only (spec/12 §1.1)."""
    found = _message(message)
    return () if found is None else (replace(found, id=uuid7(), metadata={}),)


def _message(value: Any) -> Message | None:
    """A message of a turn's fact."""
    if not isinstance(value, Mapping) or not isinstance(value.get("content"), list):
        return None
    return Message(
        id=str(value.get("id")), role="user", parts=tuple(value["content"]), metadata=value.get("metadata") or {}
    )
