"""Which turns' files a turn sees: its own and those above it. Files follow branches (spec/12 §2.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from pizzabot.host.transcripts.turns import Tree, Turns
from pizzabot.host.workspace.place import Path
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import Run

_FEW = 500
"""Turns that are walked on the loop; more in a thread."""


class PathsOfTurns:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def of_head(
        self, thread_id: str, head: str | None = None, /, *, caller: Caller
    ) -> tuple[str | None, Collection[str] | None]:
        """The turn that the thread is at (or `head`), and the turns whose files it sees.

        Raises `NotFound` `no_such_thread`.
        """
        tree = await self._turns.tree(thread_id, caller=caller)
        at = tree.head if head is None else head
        return at, await _seen(tree, at)

    def of_run(self, run: Run, turn_id: str, /) -> Path:
        """Those of a run of a turn, found out when they are asked for first: many runs never touch a file."""
        caller = Caller(owner=run.owner)
        known: list[Collection[str] | None] = []

        async def turns() -> Collection[str] | None:
            if not known:
                tree = await self._turns.tree(run.thread_id, caller=caller)
                known.append(await _seen_by_run(tree, run, turn_id))
            return known[0]

        return turns


async def _seen_by_run(tree: Tree, run: Run, turn_id: str) -> Collection[str] | None:
    if turn_id in tree.places:
        return await _seen(tree, turn_id)
    # What tells of the turn waits for the disk still: it will stand below the turn that its row says, or the head.
    planned = run.options.get("turn") or {}
    above = await _seen(tree, planned.get("parent_id", tree.head))
    return None if above is None else [*above, turn_id]


async def _seen(tree: Tree, turn_id: str | None) -> Collection[str] | None:
    """None where every turn there is can be seen: no branches, or nothing to ask storage about."""
    if turn_id is None:
        return None if not tree.places else []
    path = tree.path(turn_id) if len(tree.places) <= _FEW else await asyncio.to_thread(tree.path, turn_id)
    return None if len(path) == len(tree.places) else path
