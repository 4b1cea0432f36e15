"""What a client can ask for, except events: each operation is one call of the host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pizzabot_hookspecs import Caller, InvalidRequest
from pizzabot_hookspecs.host import Host
from pizzabot_hookspecs.storage_backends import ThreadStatus
from pizzabot_lines.requests import Request, wrong
from pizzabot_lines.rows import interrupt_row, thread_row

MAX_WAIT_SECONDS = 30.0
MAX_STATES = 100
"""Earlier states in one answer; each may be a megabyte, and an answer is one line."""

Operation: TypeAlias = Callable[[Request, Caller], Awaitable[object]]


class Operations:
    """`perform` gives what goes into the answer's `result`; the host's own errors pass through to the client."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._operations: Mapping[str, Operation] = {
            "identity": self._identity,
            "status": self._status,
            "models": self._models,
            "plugins": self._plugins,
            "create_thread": self._create_thread,
            "thread": self._thread,
            "threads": self._threads,
            "delete_thread": self._delete_thread,
            "state": self._state,
            "history": self._history,
            "update_state": self._update_state,
            "command": self._command,
            "stop": self._stop,
            "interrupts": self._interrupts,
        }

    async def perform(self, request: Request, caller: Caller) -> object:
        operation = self._operations.get(request.op)
        if operation is None:
            known = ", ".join([*self._operations, "events", "activity", "unsubscribe"])
            raise InvalidRequest("unknown_op", f"there is no op {request.op[:80]!r}; there are {known}")
        return await operation(request, caller)

    async def _identity(self, _request: Request, _caller: Caller) -> object:
        return {**self._host.identity(), "health": self._host.health().value}

    async def _status(self, _request: Request, caller: Caller) -> object:
        return await self._host.status(caller=caller)

    async def _models(self, request: Request, caller: Caller) -> object:
        return await self._host.models(refresh=request.flag("refresh"), caller=caller)

    async def _plugins(self, _request: Request, caller: Caller) -> object:
        return self._host.plugins(caller=caller)

    async def _create_thread(self, request: Request, caller: Caller) -> object:
        thread = await self._host.threads.create(
            request.optional_text("thread_id"),
            metadata=request.json_object("metadata"),
            if_exists=request.optional_text("if_exists") or "raise",
            caller=caller,
        )
        return thread_row(thread)

    async def _thread(self, request: Request, caller: Caller) -> object:
        return thread_row(await self._host.threads.get(request.text("thread_id"), caller=caller))

    async def _threads(self, request: Request, caller: Caller) -> object:
        status = request.optional_text("status")
        if status is not None and status not in list(ThreadStatus):
            raise wrong("status", f"one of {', '.join(ThreadStatus)}")
        page = await self._host.threads.page(
            limit=request.count("limit") or 200,
            offset=request.count("offset") or 0,
            status=None if status is None else ThreadStatus(status),
            caller=caller,
        )
        return {"threads": [thread_row(thread) for thread in page]}

    async def _delete_thread(self, request: Request, caller: Caller) -> object:
        return {"deleted": await self._host.threads.delete(request.text("thread_id"), caller=caller)}

    async def _state(self, request: Request, caller: Caller) -> object:
        checkpoint_id = request.optional_text("checkpoint_id")
        return await self._host.threads.state(request.text("thread_id"), checkpoint_id=checkpoint_id, caller=caller)

    async def _history(self, request: Request, caller: Caller) -> object:
        limit = request.count("limit") or 10
        if limit > MAX_STATES:
            raise wrong("limit", f"at most {MAX_STATES}")
        states = await self._host.threads.history(
            request.text("thread_id"),
            limit=limit,
            before=request.optional_text("before"),
            namespace=request.namespace("namespace"),
            caller=caller,
        )
        return {"states": list(states)}

    async def _update_state(self, request: Request, caller: Caller) -> object:
        values = request.json_object("values")
        if values is None:
            raise wrong("values", "an object")
        return await self._host.threads.update_state(
            request.text("thread_id"),
            values,
            as_node=request.optional_text("as_node"),
            checkpoint_id=request.optional_text("checkpoint_id"),
            caller=caller,
        )

    async def _command(self, request: Request, caller: Caller) -> object:
        if "command" not in request.params:
            raise wrong("command", "a command of the protocol: {id, method, params}")
        reply = await self._host.runs.command(
            request.text("thread_id"),
            request.params["command"],
            idempotency_key=request.optional_text("idempotency_key"),
            caller=caller,
        )
        return {"outcome": reply.outcome.value, "envelope": reply.envelope}

    async def _stop(self, request: Request, caller: Caller) -> object:
        outcome = await self._host.runs.stop(
            request.text("thread_id"),
            request.optional_text("run_id"),
            wait_seconds=request.seconds("wait_seconds", default=10.0, most=MAX_WAIT_SECONDS),
            caller=caller,
        )
        return {"outcome": outcome.value}

    async def _interrupts(self, request: Request, caller: Caller) -> object:
        waiting = await self._host.runs.interrupts(request.optional_text("thread_id"), caller=caller)
        return {"interrupts": [interrupt_row(interrupt) for interrupt in waiting]}
