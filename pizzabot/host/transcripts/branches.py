"""Going to another branch, forking a thread, shortening the model's context: on a thread where no run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from pizzabot.host.attachments.in_messages import ids_in
from pizzabot.host.ids import checked_id, new_run_id, uuid7
from pizzabot.host.runs.drivers import Changed
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.pump_services import Models
from pizzabot.host.runs.requests import checked_key, messages_of
from pizzabot.host.transcripts.copying import copied_events, copied_run
from pizzabot.host.transcripts.thread_log import ThreadLog, compaction_setting
from pizzabot.host.transcripts.turns import KnownTurn, Turns, kept, settled_turn
from pizzabot.host.workspace.belongings import Belongings, renumbered
from pizzabot_hookspecs import SYSTEM, Caller, Conflict, InvalidRequest, NotFound, TooLarge
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, CompactsContext
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.storage_backends import Run, Storage, StoredEvent, Thread, ThreadCopy
from pizzabot_hookspecs.wire import JsonValue

MAX_FORK_EVENTS = 200_000
"""Events of the turns that a fork copies, before their deltas are merged."""
MAX_FORK_BYTES = 128 * 1024 * 1024
_PAGE = 2_000


class Branches:
    """`choose_head`, `fork` and `compact` of `pizzabot_hookspecs.host.Transcripts`; the docstrings are there."""

    def __init__(
        self,
        *,
        storage: Storage,
        engine: RunEngine,
        turns: Turns,
        log: ThreadLog,
        models: Models,
        runtime: Callable[[], Awaitable[AgentRuntime]],
        changed: Changed,
        files: Belongings | None = None,
    ) -> None:
        self._storage = storage
        self._engine = engine
        self._turns = turns
        self._log = log
        self._models = models
        self._runtime = runtime
        self._changed = changed
        self._files = files

    async def choose_head(self, thread_id: str, turn_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        await self._thread(thread_id, caller=caller)
        async with self._engine.quiet(thread_id):
            tree = await self._turns.tree(thread_id, caller=caller)
            if turn_id not in tree.places:
                raise NotFound("no_such_turn", f"this thread has no turn {turn_id!r}")
            leaf = tree.leaf(turn_id)
            if leaf == tree.head:
                return {"turnId": leaf}
            turn = await settled_turn(self._turns, thread_id, leaf, caller=caller)
            runtime, end = await kept(await self._runtime(), thread_id, turn.end, caller=caller)
            copy = await runtime.go_to(thread_id, end, caller=caller)
            await self._log.moved(thread_id, leaf, copy, caller=caller)
        self._changed(caller.owner, thread_id)
        return {"turnId": leaf}

    async def fork(
        self, thread_id: str, turn_id: str | None = None, /, *, new_thread_id: str | None = None, caller: Caller
    ) -> Thread:
        thread = await self._thread(thread_id, caller=caller)
        target = uuid7() if new_thread_id is None else checked_id(new_thread_id, what="thread_id")
        with self._engine.reserved(target):  # what is undone when it fails is then nobody else's
            if await self._storage.thread(target, caller=SYSTEM) is not None:
                raise Conflict("thread_exists", f"there is a thread {target!r} already")
            return await self._fork(thread, turn_id, target, caller=caller)

    async def _fork(self, thread: Thread, turn_id: str | None, target: str, *, caller: Caller) -> Thread:
        thread_id = thread.thread_id
        tree = await self._turns.tree(thread_id, caller=caller)
        chosen = tree.head if turn_id is None else turn_id
        if chosen is None:
            raise NotFound("no_such_turn", f"thread {thread_id!r} has no turn yet: there is nothing to fork")
        last = await settled_turn(self._turns, thread_id, chosen, caller=caller)
        ids = tree.path(chosen)
        known = await self._turns.known(thread_id, ids, caller=caller)
        path = [known[one] for one in ids if one in known]
        copy = await self._copied(thread, target, path, caller=caller)
        runtime, end = await kept(await self._runtime(), thread_id, last.end, caller=caller)
        async with AsyncExitStack() as around:
            if self._files is not None:
                await around.enter_async_context(self._files.copying(copy.files, thread_id, target))
            await runtime.copy_thread(thread_id, end, target, caller=caller)
            try:
                made = await self._storage.adopt_thread(copy, caller=caller)
            except BaseException:
                await (await self._runtime()).forget(target, caller=caller)
                raise
        self._changed(caller.owner, target)
        return made

    async def _copied(self, thread: Thread, target: str, path: Sequence[KnownTurn], *, caller: Caller) -> ThreadCopy:
        ids = [run_id for turn in path for run_id in turn.run_ids]
        found = [await self._storage.run(run_id, caller=caller) for run_id in ids]
        runs = [run for run in found if run is not None]
        new_ids = {run.run_id: new_run_id() for run in runs}
        events = await self._events(thread.thread_id, runs, caller=caller)
        turn_ids = {turn.turn_id for turn in path}
        state_of = runs[-1].run_id if runs else ""
        seqs: dict[int, int] = {}

        def copied() -> list[StoredEvent]:
            return list(
                copied_events(
                    events, thread_id=target, run_ids=new_ids, turn_ids=turn_ids, state_of=state_of, seqs=seqs
                )
            )

        told = await asyncio.to_thread(copied)
        files: Sequence[FileVersion] = ()
        if self._files is not None:
            rows = await self._files.versions_of(thread.thread_id, turn_ids=turn_ids, caller=caller)
            files = renumbered(rows, target, run_ids=new_ids, seqs=seqs)

        return ThreadCopy(
            thread_id=target,
            title=thread.title,
            metadata={**thread.metadata, "forked_from": thread.thread_id},
            model_id=thread.model_id,
            runs=[copied_run(run, thread_id=target, owner=caller.owner, run_ids=new_ids) for run in runs],
            events=told,
            files=files,
            attachments=ids_in([message for run in runs for message in messages_of(run.input)]),
        )

    async def _events(self, thread_id: str, runs: Sequence[Run], *, caller: Caller) -> Sequence[StoredEvent]:
        """The log from the first run of the path on, without what other branches did."""
        firsts = [run.first_seq for run in runs if run.first_seq is not None]
        own = {run.run_id for run in runs}
        kept_events: list[StoredEvent] = []
        after, size = min(firsts, default=1) - 1, 0
        while page := await self._storage.events(thread_id, after=after, limit=_PAGE, caller=caller):
            mine = [event for event in page if event.run_id is None or event.run_id in own]
            size += sum(len(event.data) for event in mine)
            kept_events += mine
            if len(kept_events) > MAX_FORK_EVENTS or size > MAX_FORK_BYTES:
                raise TooLarge("thread_too_large", "the conversation is too long to be copied: fork at an earlier turn")
            after = page[-1].seq
        return kept_events

    async def compact(
        self, thread_id: str, /, *, idempotency_key: str | None = None, caller: Caller
    ) -> Mapping[str, JsonValue]:
        thread = await self._thread(thread_id, caller=caller)
        key = checked_key(idempotency_key)
        async with self._engine.quiet(thread_id):
            known = await self._storage.setting(compaction_setting(thread_id), caller=caller)
            if key is not None and isinstance(known, dict) and known.get("key") == key:
                result = known.get("result")
                return result if isinstance(result, dict) else {}
            runtime = await self._runtime()
            if not isinstance(runtime, CompactsContext):
                raise InvalidRequest("not_supported", "the agent runtime in use cannot shorten a context")
            tree = await self._turns.tree(thread_id, caller=caller)
            if tree.head is None:
                raise Conflict("nothing_to_compact", "nothing was said on this thread yet")
            model = await self._models.resolve(thread.model_id)
            done = await runtime.compact(thread_id, model, caller=caller)
            told: dict[str, Any] = {
                "turn_id": tree.head,
                "reason": "manual",
                "tokens_before": done.tokens_before,
                "tokens_after": done.tokens_after,
            }
            moved = {"turn_id": tree.head, "end": done.checkpoint_id}
            await self._log.tell(thread_id, [("context", told), ("head", moved)], caller=caller)
            answer: dict[str, JsonValue] = {"tokensBefore": done.tokens_before, "tokensAfter": done.tokens_after}
            if key is not None:
                await self._storage.put_setting(
                    compaction_setting(thread_id), {"key": key, "result": answer}, caller=caller
                )
            return answer

    async def _thread(self, thread_id: str, *, caller: Caller) -> Thread:
        thread = await self._storage.thread(checked_id(thread_id, what="thread_id"), caller=caller)
        if thread is None:
            raise NotFound("no_such_thread", f"there is no thread {thread_id!r}")
        return thread
