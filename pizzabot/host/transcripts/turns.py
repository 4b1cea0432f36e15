"""A thread's turns as its branches are made from them: where they stand, what they began on, what they left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, KeepsBranches

UNSETTLED = frozenset({"running", "waiting", "attention"})
"""Of a turn, the states that are not its last."""


@dataclass(frozen=True, kw_only=True)
class KnownTurn:
    """`base` and `end` are checkpoints: before the turn and after it; None where it never got that far."""

    turn_id: str
    parent_id: str | None
    status: str
    message: Mapping[str, Any] | None
    base: str | None
    end: str | None
    run_ids: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Place:
    parent_id: str | None
    seq: int
    rev: int


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Every turn of a thread, by id, and the one that it is at."""

    head: str | None
    places: Mapping[str, Place]

    def path(self, turn_id: str) -> list[str]:
        """From the root to the turn."""
        path: list[str] = []
        at: str | None = turn_id
        while at is not None and (place := self.places.get(at)) is not None:
            path.append(at)
            above = None if place.parent_id is None else self.places.get(place.parent_id)
            at = place.parent_id if above is not None and above.seq < place.seq else None
        return path[::-1]

    def leaf(self, turn_id: str) -> str:
        """The end of the turn's branch that was used last."""
        children: dict[str, list[str]] = {}
        for child, place in self.places.items():
            if place.parent_id is not None:
                children.setdefault(place.parent_id, []).append(child)
        ends, waiting, seen = [turn_id], [turn_id], {turn_id}
        while waiting:
            below = [child for child in children.get(waiting.pop(), ()) if child not in seen]
            seen.update(below)
            waiting += below
            ends += [child for child in below if not children.get(child)]
        leaves = [end for end in ends if not children.get(end)] or [turn_id]
        return max(leaves, key=lambda end: (self.places[end].rev, self.places[end].seq))


class Turns(Protocol):
    """Where turns are read; a reader of transcripts is one."""

    async def known(self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller) -> Mapping[str, KnownTurn]:
        """Those of the turns that there are, by id."""
        ...

    async def tree(self, thread_id: str, /, *, caller: Caller) -> Tree: ...


async def settled_turn(turns: Turns, thread_id: str, turn_id: str, *, caller: Caller) -> KnownTurn:
    """Raises `NotFound` `no_such_turn`, `Conflict` `turn_not_settled`."""
    turn = (await turns.known(thread_id, [turn_id], caller=caller)).get(turn_id)
    if turn is None:
        raise NotFound("no_such_turn", f"this thread has no turn {turn_id!r}")
    if turn.status in UNSETTLED:
        raise Conflict("turn_not_settled", f"turn {turn_id!r} is {turn.status}: wait for its end, or stop it")
    return turn


async def kept(
    runtime: AgentRuntime, thread_id: str, checkpoint_id: str | None, *, caller: Caller
) -> tuple[KeepsBranches, str]:
    """The runtime that keeps the checkpoint. Raises `InvalidRequest` `not_supported`, `Conflict` `checkpoint_gone`."""
    if not isinstance(runtime, KeepsBranches):
        raise InvalidRequest("not_supported", "the agent runtime in use keeps no branches of a thread")
    if checkpoint_id is None or not await runtime.has_checkpoint(thread_id, checkpoint_id, caller=caller):
        detail = "what the model knew at this turn is not kept any more: fork the thread at a later turn instead"
        raise Conflict("checkpoint_gone", detail)
    return runtime, checkpoint_id
