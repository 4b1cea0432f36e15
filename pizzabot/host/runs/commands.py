"""The protocol's commands: `{id, method, params}` in, an envelope out; nothing a client sends raises (wire.md §2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from pizzabot.host.ids import checked_id
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.requests import RunRequest, parse_run_start
from pizzabot.host.runs.responding import parse_responses
from pizzabot.host.text import clean
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound, PizzabotError, Unavailable
from pizzabot_hookspecs.host import CommandOutcome, CommandReply, StopOutcome, Threads
from pizzabot_hookspecs.storage_backends import Admission
from pizzabot_hookspecs.wire import ThreadState

_MALFORMED = frozenset({"invalid_argument", "invalid_id", "thread_id_mismatch"})
_DOMAIN = frozenset({"no_such_interrupt", "no_such_checkpoint", "no_such_turn"})
_Result = tuple[Mapping[str, Any], Mapping[str, Any] | None]


class Branching(Protocol):
    """Says where a run that branches off begins and where its turn stands (`pizzabot.host.transcripts.branching`)."""

    async def beside(self, request: RunRequest, turn_id: str, *, caller: Caller) -> RunRequest: ...

    async def behind(self, request: RunRequest, state: ThreadState, *, caller: Caller) -> RunRequest: ...


class RequestFiles(Protocol):
    """Knows the attachments that messages refer to (`pizzabot.host.attachments.in_messages`)."""

    async def completed(self, request: RunRequest, /, *, caller: Caller) -> RunRequest: ...

    async def claim(self, request: RunRequest, /, *, caller: Caller) -> None: ...


class Commands:
    """Dispatches commands to the engine and the threads. Without `files` what messages refer to stays as it is."""

    def __init__(
        self, engine: RunEngine, threads: Threads, branching: Branching, files: RequestFiles | None = None
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._branching = branching
        self._files = files
        self._methods: Mapping[str, Callable[..., Awaitable[_Result]]] = {
            "run.start": self._run_start,
            "run.stop": self._run_stop,
            "state.get": self._state_get,
            "input.respond": self._input_respond,
        }

    async def dispatch(
        self, thread_id: str, body: object, *, caller: Caller, idempotency_key: str | None
    ) -> CommandReply:
        command_id: int | None = None
        try:
            checked_id(thread_id, what="thread_id")
            command_id, method, params = _parse(body)
            handler = self._methods.get(method)
            if handler is None:
                known = ", ".join(sorted(self._methods))
                return _error(
                    CommandOutcome.UNKNOWN, command_id, "unknown_command", f"no command {method!r}; there are {known}"
                )
            result, meta = await handler(thread_id, params, caller=caller, idempotency_key=idempotency_key)
        except PizzabotError as error:
            return _refusal(command_id, error)
        envelope: dict[str, Any] = {"type": "success", "id": command_id, "result": result}
        if meta is not None:
            envelope["meta"] = meta
        return CommandReply(outcome=CommandOutcome.DONE, envelope=envelope)

    async def _run_start(
        self, thread_id: str, params: Mapping[str, Any], *, caller: Caller, idempotency_key: str | None
    ) -> _Result:
        request = parse_run_start(thread_id, params, idempotency_key=idempotency_key)
        fork = request.config.get("checkpoint_id")
        if request.branch_from is not None:
            await self._threads.get(thread_id, caller=caller)
            request = await self._branching.beside(request, request.branch_from, caller=caller)
        elif isinstance(fork, str):  # a run that cannot begin must not store what was said
            state = await self._threads.state(thread_id, caller=caller, checkpoint_id=fork)
            request = await self._branching.behind(request, state, caller=caller)
        if self._files is not None:
            request = await self._files.completed(request, caller=caller)
        admission: Admission = await self._engine.admit(request, caller=caller)
        if self._files is not None:  # again for one that is sent again: the server may have died in between
            await self._files.claim(request, caller=caller)
        last_seq = await self._engine.last_before(admission, caller=caller)
        return {"run_id": admission.run.run_id}, {"applied_through_seq": last_seq}

    async def _run_stop(self, thread_id: str, params: Mapping[str, Any], *, caller: Caller, **_: object) -> _Result:
        run_id = clean(params.get("run_id"))
        if run_id is not None and not isinstance(run_id, str):
            raise InvalidRequest("invalid_argument", "run_id must be text", fields={"run_id": "must be text"})
        outcome = await self._engine.stop(thread_id, run_id, caller=caller, wait_seconds=10.0)
        if outcome is StopOutcome.PENDING:
            raise Conflict("cancellation_pending", "the run was told to stop and has not settled within 10 s")
        return {}, None

    async def _state_get(self, thread_id: str, params: Mapping[str, Any], *, caller: Caller, **_: object) -> _Result:
        state = await self._threads.state(thread_id, caller=caller)
        keys = params.get("keys")
        values = state["values"]
        if isinstance(keys, list):
            values = {key: value for key, value in values.items() if key in keys}
        checkpoint = state["checkpoint"]
        reference = (
            None if checkpoint is None else {"id": checkpoint["checkpoint_id"], "ns": checkpoint["checkpoint_ns"]}
        )
        return {"values": values, "checkpoint": reference}, None

    async def _input_respond(
        self, thread_id: str, params: Mapping[str, Any], *, caller: Caller, idempotency_key: str | None
    ) -> _Result:
        await self._threads.get(thread_id, caller=caller)
        responses = parse_responses(params, idempotency_key=idempotency_key)
        admission = await self._engine.respond(thread_id, responses, caller=caller)
        return {"run_id": admission.run.run_id}, {"applied_through_seq": admission.last_seq}


def _parse(body: object) -> tuple[int, str, Mapping[str, Any]]:
    if not isinstance(body, dict):
        raise InvalidRequest("invalid_argument", "a command is a JSON object {id, method, params}")
    command_id, method, params = body.get("id"), body.get("method"), body.get("params")
    if isinstance(command_id, bool) or not isinstance(command_id, int):
        raise InvalidRequest("invalid_argument", "id must be an integer", fields={"id": "must be an integer"})
    if method is None:
        method = ""
    if not isinstance(method, str):
        raise InvalidRequest("invalid_argument", "method must be text", fields={"method": "must be text"})
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise InvalidRequest("invalid_argument", "params must be an object", fields={"params": "must be an object"})
    return command_id, method, params


def _refusal(command_id: int | None, error: PizzabotError) -> CommandReply:
    outcome = CommandOutcome.REFUSED
    if error.code in _MALFORMED:
        outcome = CommandOutcome.MALFORMED
    elif isinstance(error, NotFound) and error.code not in _DOMAIN:
        outcome = CommandOutcome.NOT_FOUND
    elif isinstance(error, Unavailable):
        outcome = CommandOutcome.UNAVAILABLE
    return _error(outcome, command_id, error.code, error.detail, error.fields)


def _error(
    outcome: CommandOutcome, command_id: int | None, code: str, message: str, fields: Mapping[str, str] | None = None
) -> CommandReply:
    envelope: dict[str, Any] = {"type": "error", "id": command_id, "error": code, "message": message}
    if fields:
        envelope["fields"] = dict(fields)
    return CommandReply(outcome=outcome, envelope=envelope)
