# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Checkpoints that were read, as a saver of their own: LangGraph makes states of them in a thread, without any I/O.

LangGraph's `aget_state_history` asks the saver for every entry's channels anew, each time back to their last snapshot,
and computes on the event loop: 200 ms for 20 entries of 1,000 messages. Here the listing is read once, the channels of
the oldest entry once, and every later entry is its parent and the parent's writes: 27 ms (`bench/history.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, DeltaChannelHistory, get_checkpoint_id
from langgraph.pregel import Pregel

Histories = Mapping[str, DeltaChannelHistory]


class ReadCheckpoints(BaseCheckpointSaver[Any]):
    """What was read of one thread and one namespace, newest first. Read only, and for one thread at a time."""

    def __init__(self, tuples: Sequence[CheckpointTuple], roots: Mapping[str, Histories]) -> None:
        super().__init__()
        self._tuples = tuples
        self._by_id = {_id_of(item.config): item for item in tuples}
        self._roots = roots

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        wanted = get_checkpoint_id(config)
        if wanted is None:
            return self._tuples[0] if self._tuples else None
        return self._by_id.get(wanted)

    def list(self, config: RunnableConfig | None, **_asked: Any) -> Iterator[CheckpointTuple]:
        """All of them: what was asked for was asked of the saver that they come from."""
        del config
        return iter(self._tuples)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return {channel: self._history(_id_of(config), channel) for channel in channels}

    def _history(self, checkpoint_id: str, channel: str) -> DeltaChannelHistory:
        """As the saver answers, by the same walk: up the parents to the nearest that stores the channel's value."""
        walked, steps = {checkpoint_id}, []
        while (parent := _id_of(self._by_id[checkpoint_id].parent_config)) in self._by_id and parent not in walked:
            walked.add(parent)
            item = self._by_id[parent]
            steps.append([write for write in item.pending_writes or () if write[1] == channel])
            if channel in item.checkpoint["channel_values"]:
                writes = [write for step in reversed(steps) for write in step]
                return {"writes": writes, "seed": item.checkpoint["channel_values"][channel]}
            checkpoint_id = parent
        root: DeltaChannelHistory = self._roots.get(checkpoint_id, {}).get(channel, {"writes": []})
        return {**root, "writes": [*root["writes"], *(write for step in reversed(steps) for write in step)]}


async def read(
    saver: BaseCheckpointSaver[Any], graph: Pregel[Any, Any, Any, Any], tuples: Sequence[CheckpointTuple]
) -> ReadCheckpoints:
    """`tuples` with what lies before them: one question to `saver` for each whose parent is not among them.

    That is the oldest, and one for each fork.
    """
    known = {_id_of(item.config) for item in tuples}
    roots = {}
    for item in tuples:
        if item.parent_config is None or _id_of(item.parent_config) in known:
            continue
        if missing := _not_stored_in(item, graph):
            found = await saver.aget_delta_channel_history(config=item.config, channels=missing)
            roots[_id_of(item.config)] = found
    return ReadCheckpoints(tuples, roots)


def _not_stored_in(item: CheckpointTuple, graph: Pregel[Any, Any, Any, Any]) -> list[str]:
    """The channels whose value is in the checkpoints before `item`. One that was never written has no version, and a
    walk for it would read the whole thread.

    LangGraph replays a `BinaryOperatorAggregate` too, where an older thread stored it as a delta.
    """
    versions, values = item.checkpoint["channel_versions"], item.checkpoint["channel_values"]
    return [
        name
        for name, channel in graph.channels.items()
        if isinstance(channel, DeltaChannel | BinaryOperatorAggregate) and name in versions and name not in values
    ]


def _id_of(config: RunnableConfig | None) -> str:
    return (get_checkpoint_id(config) if config else None) or ""
