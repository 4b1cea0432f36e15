"""A thread's checkpoints for another thread: one and all it came from, under the same ids (spec/12 §1.1, Branches).

A saver may have an `acopy_thread`, which takes the whole thread; those of SQLite and of memory have none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config
from pizzabot_hookspecs import NotFound, TooLarge

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

COPIED_LIMIT = 200_000
"""Checkpoints that one copy may have: a conversation of 20,000 turns with a tool call each."""

AT_ONCE = 32
"""Checkpoints of a copy that are in memory."""


async def copy_checkpoints(saver: BaseCheckpointSaver[Any], thread_id: str, checkpoint_id: str, target_id: str) -> None:
    """Give `target_id` the checkpoint and its ancestors, with the subagents' below them. `AT_ONCE` are in memory.

    What `checkpoint_id` itself has begun (its writes, its subagents) stays behind: that is of whatever came after it.
    All or nothing: a copy that fails is removed. Raises `NotFound` `no_such_checkpoint`, `TooLarge` `thread_too_large`.
    """
    if await saver.aget_tuple(thread_config(thread_id, checkpoint_id)) is None:
        raise NotFound("no_such_checkpoint", f"thread {thread_id!r} has no checkpoint {checkpoint_id!r}")
    try:
        await _copy(saver, thread_id, checkpoint_id, target_id)
    except BaseException:
        await asyncio.shield(saver.adelete_thread(target_id))
        raise


async def _copy(saver: BaseCheckpointSaver[Any], thread_id: str, checkpoint_id: str, target_id: str) -> None:
    """First the root's own, then what subagents left below them: savers differ in how they mix namespaces."""
    copying = _Copying(saver, target_id)
    lineage: set[str] = set()
    wanted: str | None = checkpoint_id
    async for item in saver.alist(thread_config(thread_id)):  # newest first: a parent comes behind its children
        found = item.config["configurable"]["checkpoint_id"]
        if found != wanted:
            continue
        await copying.add(item, writes=found != checkpoint_id)
        if found != checkpoint_id:
            lineage.add(found)
        _limit(len(lineage), thread_id)
        if (wanted := _parent_of(item)) is None:
            break
    if wanted is not None:
        raise NotFound("no_such_checkpoint", f"thread {thread_id!r} lost its checkpoint {wanted!r} while it was copied")
    below = 0
    async for item in saver.alist({"configurable": {"thread_id": thread_id}}):
        if item.config["configurable"].get("checkpoint_ns") and _root_of(item) in lineage:
            await copying.add(item, writes=True)
            _limit(below := below + 1, thread_id)
    await copying.store()


class _Copying:
    """Stores `AT_ONCE` checkpoints at the same moment: a saver commits them together."""

    def __init__(self, saver: BaseCheckpointSaver[Any], target_id: str) -> None:
        self._saver = saver
        self._target_id = target_id
        self._waiting: list[tuple[CheckpointTuple, bool]] = []

    async def add(self, item: CheckpointTuple, *, writes: bool) -> None:
        self._waiting.append((item, writes))
        if len(self._waiting) == AT_ONCE:
            await self.store()

    async def store(self) -> None:
        items, self._waiting = self._waiting, []
        puts = [_put(self._saver, item, self._target_id, writes=writes) for item, writes in items]
        for stored in await asyncio.gather(*puts, return_exceptions=True):  # all have ended before one is heard
            if isinstance(stored, BaseException):
                raise stored


def _limit(copied: int, thread_id: str) -> None:
    if copied > COPIED_LIMIT:
        detail = f"a copy of thread {thread_id!r} would be of more than {COPIED_LIMIT:,} checkpoints"
        raise TooLarge("thread_too_large", f"{detail}; fork it from an earlier turn")


async def _put(saver: BaseCheckpointSaver[Any], item: CheckpointTuple, target_id: str, *, writes: bool) -> None:
    namespace = item.config["configurable"].get("checkpoint_ns", "")
    checkpoint = item.checkpoint
    stored = {name: checkpoint["channel_versions"][name] for name in checkpoint["channel_values"]}
    at = await saver.aput(_below(target_id, namespace, _parent_of(item)), checkpoint, item.metadata, stored)
    by_task: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in (item.pending_writes or ()) if writes else ():
        by_task.setdefault(task_id, []).append((channel, value))
    for number, (task_id, written) in enumerate(by_task.items()):
        # Savers replay writes in the order of the tasks' paths, which they do not tell: this is the order they came in.
        await saver.aput_writes(at, written, task_id, f"{number:06d}")


def _below(thread_id: str, namespace: str, parent: str | None) -> RunnableConfig:
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace}
    return {"configurable": configurable if parent is None else {**configurable, "checkpoint_id": parent}}


def _parent_of(item: CheckpointTuple) -> str | None:
    parent: Mapping[str, Any] = (item.parent_config or {}).get("configurable") or {}
    return parent.get("checkpoint_id")


def _root_of(item: CheckpointTuple) -> str | None:
    """The root's checkpoint that a subagent's one was made for."""
    parents: Mapping[str, str] = (item.metadata or {}).get("parents") or {}
    return parents.get("")
