"""`host.runs` of a scripted host: commands, observers, stop, and what waits for a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pizzabot.testing.scripted_host.script import Run, begin
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, PizzabotError
from pizzabot_hookspecs.host import CommandOutcome, CommandReply, EventBatch, EventFilter, StopOutcome
from pizzabot_hookspecs.interrupts import Interrupt

if TYPE_CHECKING:
    from pizzabot.testing.scripted_host.host import ScriptedHost


class ScriptedRuns:
    """Runs by script, one at a time on a thread."""

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    async def command(
        self, thread_id: str, body: object, /, *, caller: Caller, idempotency_key: str | None = None
    ) -> CommandReply:
        self._host.calls.append((thread_id, body, caller, idempotency_key))
        scripted, self._host.next_reply = self._host.next_reply, None
        if isinstance(scripted, Exception):
            raise scripted
        if scripted is not None:
            return scripted
        if not isinstance(body, dict):
            return _refusal(CommandOutcome.MALFORMED, None, "invalid_argument", "a command is a JSON object")
        try:
            return await self._do(thread_id, body, caller, idempotency_key)
        except PizzabotError as error:
            return _refusal(CommandOutcome.REFUSED, body.get("id"), error.code, error.detail)

    async def interrupts(self, thread_id: str | None = None, /, *, caller: Caller) -> Sequence[Interrupt]:
        """Those that a test put into `ScriptedHost.waiting`."""
        return self._host.inbox(caller.owner, thread_id)

    async def stop(
        self, thread_id: str, run_id: str | None = None, /, *, caller: Caller, wait_seconds: float = 10.0
    ) -> StopOutcome:
        run = self._host.conversation(thread_id, caller.owner).run
        if run is None or not run.active or run_id not in (None, run.run_id):
            return StopOutcome.NO_RUN
        await run.cut_short("CANCELLED")
        try:
            async with asyncio.timeout(wait_seconds):
                await run.ended()
        except TimeoutError:
            return StopOutcome.PENDING
        return StopOutcome.CANCELLED

    async def observe(
        self,
        thread_id: str,
        filter: EventFilter,  # noqa: A002 - the contract's name
        /,
        *,
        since: int | None = None,
        idle_seconds: float = 5.0,
        caller: Caller,
    ) -> AsyncGenerator[EventBatch, None]:
        log = self._host.conversation(thread_id, caller.owner).log
        if since is not None and since > log.last_seq:
            raise Conflict("cursor_ahead", f"since {since} lies beyond the log's end {log.last_seq}")
        batches = log.follow(filter, since, idle_seconds)
        await anext(batches)  # attached from here on: closing it detaches, also when nobody ever reads
        return batches

    async def _do(self, thread_id: str, body: Mapping[str, Any], caller: Caller, key: str | None) -> CommandReply:
        method, command_id, params = body.get("method"), body.get("id"), _object(body.get("params"))
        if method == "run.start":
            last_seq = self._host.conversation(thread_id, caller.owner).log.last_seq
            run_id = await self._start(thread_id, params, caller, key)
            return _success(command_id, {"run_id": run_id}, meta={"applied_through_seq": last_seq})
        if method == "run.stop":
            await self.stop(thread_id, params.get("run_id"), caller=caller)
            return _success(command_id, {})
        if method == "state.get":
            state = await self._host.threads.state(thread_id, caller=caller)
            return _success(command_id, {"values": state["values"], "checkpoint": None})
        message = f"unknown command {str(method)[:80]!r}; known are run.start, run.stop, state.get"
        return _refusal(CommandOutcome.UNKNOWN, command_id, "unknown_command", message)

    async def _start(self, thread_id: str, params: Mapping[str, Any], caller: Caller, key: str | None) -> str:
        conversation = self._host.conversation(thread_id, caller.owner)
        if key is not None and key in conversation.keys:
            return conversation.keys[key]
        run = Run(run_id=self._host.mint("run"), text=_last_text(params))
        active = conversation.run if conversation.run is not None and conversation.run.active else None
        if active is not None and params.get("multitask_strategy") == "reject":
            raise Conflict("run_active", f"run {active.run_id} is active on thread {thread_id}; stop it first")
        if active is not None:
            await active.cut_short("SUPERSEDED")
            await active.ended()
        if key is not None:
            conversation.keys[key] = run.run_id
        conversation.run = run
        self._host.begin(conversation)
        begin(conversation.log, run, conversation.messages, self._host.clock)
        self._host.feed.changes.notify()
        run.when_ended(self._host.feed.changes.notify)
        return run.run_id


def _last_text(params: Mapping[str, Any]) -> str:
    messages = _object(params.get("input")).get("messages")
    if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
        raise InvalidRequest("invalid_argument", "`params.input.messages` must be a list that ends with a message")
    content = messages[-1].get("content")
    return content if isinstance(content, str) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _success(command_id: object, result: Mapping[str, Any], **extra: Mapping[str, Any]) -> CommandReply:
    envelope = {"type": "success", "id": command_id, "result": result, **extra}
    return CommandReply(outcome=CommandOutcome.DONE, envelope=envelope)


def _refusal(outcome: CommandOutcome, command_id: object, code: str, message: str) -> CommandReply:
    envelope = {"type": "error", "id": command_id, "error": code, "message": message}
    return CommandReply(outcome=outcome, envelope=envelope)
