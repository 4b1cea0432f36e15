"""Retention: a day after a run, the deltas of a block become one; the transcript stays (durable-runs rule 5).

Only neighbours in the log are merged, so that no other event lies inside a merged stretch. The one delta keeps the last
`seq` and names the first in `from_seq`: a reader whose cursor lies inside replaces the text of the block.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pizzabot.host.text import to_json
from pizzabot_hookspecs import SYSTEM, Logger, PizzabotError
from pizzabot_hookspecs.storage_backends import MergedEvents, Run, Storage, StoredEvent

MERGE_AFTER_SECONDS = 24 * 3600.0
ROUND_SECONDS = 3600.0
RUNS_A_ROUND = 200
MAX_MERGED_CHARACTERS = 64_000
"""A merged delta is cut there: frames stay small enough for every client."""
_TEXT_KEY = {"text-delta": "text", "reasoning-delta": "reasoning"}
_PAGE = 2_000

_Key = tuple[Any, ...]


def merge_deltas(events: Sequence[StoredEvent]) -> list[MergedEvents]:
    """The stretches of two or more neighbouring deltas of one block, each as the one delta that takes their place."""
    merged: list[MergedEvents] = []
    for stretch in _stretches(events):
        if len(stretch) > 1:
            first, last = stretch[0][0], stretch[-1][0]
            data = dict(stretch[-1][1])
            kind = data["delta"]["type"]
            key = _TEXT_KEY[kind]
            text = "".join(one["delta"][key] for _, one in stretch)
            data["delta"] = {**data["delta"], key: text}
            data["from_seq"] = stretch[0][1].get("from_seq", first.seq)
            merged.append(MergedEvents(first_seq=first.seq, last_seq=last.seq, data=to_json(data)))
    return merged


def _stretches(events: Sequence[StoredEvent]) -> Iterator[list[tuple[StoredEvent, dict[str, Any]]]]:
    stretch: list[tuple[StoredEvent, dict[str, Any]]] = []
    key: _Key | None = None
    characters = 0
    for event in events:
        data = _delta(event)
        own = None if data is None else _key(event, data)
        adds = 0 if data is None else len(data["delta"][_TEXT_KEY[data["delta"]["type"]]])
        follows = bool(stretch) and stretch[-1][0].seq + 1 == event.seq and characters + adds <= MAX_MERGED_CHARACTERS
        if own is None or own != key or not follows:
            yield stretch
            stretch, characters = [], 0
        if data is not None:
            stretch.append((event, data))
            characters += adds
        key = own
    yield stretch


def _delta(event: StoredEvent) -> dict[str, Any] | None:
    if event.method != "messages" or b"content-block-delta" not in event.data:
        return None
    data: dict[str, Any] = json.loads(event.data)
    kind = data.get("delta", {}).get("type") if data.get("event") == "content-block-delta" else None
    return data if kind in _TEXT_KEY else None


def _key(event: StoredEvent, data: dict[str, Any]) -> _Key:
    return (event.run_id, event.namespace, event.node, data.get("run_id"), data.get("index"), data["delta"]["type"])


class Merger:
    """Merges old runs in the background, a bounded number each round; a failing one is tried again in the next."""

    def __init__(self, storage: Storage, *, clock: Callable[[], float], logger: Logger) -> None:
        self._storage = storage
        self._clock = clock
        self._logger = logger
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._rounds(), name="merging")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            try:
                await self.merge_old_runs()
            except PizzabotError as error:
                self._logger.warning("merging.failed", code=error.code, detail=error.detail)

    async def merge_old_runs(self) -> int:
        """One round; how many runs were merged."""
        runs = await self._storage.mergeable_runs(
            ended_before=self._clock() - MERGE_AFTER_SECONDS, limit=RUNS_A_ROUND, caller=SYSTEM
        )
        for run in runs:
            await self._storage.merge_events(run.run_id, await self._merged(run), caller=SYSTEM)
        return len(runs)

    async def _merged(self, run: Run) -> list[MergedEvents]:
        """The merged stretches of one run, read page by page from its first event; the merging is done in a thread."""
        if run.first_seq is None:
            return []
        merged: list[MergedEvents] = []
        after = run.first_seq - 1
        while page := await self._storage.events(run.thread_id, after=after, limit=_PAGE, caller=SYSTEM):
            own = [event for event in page if event.run_id == run.run_id]
            merged += await asyncio.to_thread(merge_deltas, own)
            if any(event.run_id not in (None, run.run_id) for event in page):
                break  # the next run of the thread: one is active at a time
            after = page[-1].seq
        return merged
