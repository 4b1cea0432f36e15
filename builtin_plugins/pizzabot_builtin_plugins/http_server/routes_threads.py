"""Threads: create, read, delete, state (spec/01 §4, wire.md §8). Imported by `serve` in a worker thread."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from litestar import Response, delete, get, post  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server.json_bodies import decode
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, checked_id, json_answer
from pizzabot_hookspecs import Caller, InvalidRequest
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import Thread

IF_EXISTS = ("raise", "do_nothing")

_NEW_THREAD = {
    "type": "object",
    "properties": {
        "thread_id": {"type": "string", "pattern": "^[A-Za-z0-9._~:@-]{1,255}$"},
        "metadata": {"type": "object"},
        "if_exists": {"type": "string", "enum": list(IF_EXISTS)},
    },
}


def thread_routes(services: Services) -> list[HTTPRouteHandler]:
    threads = services.host.threads

    @post("/threads", status_code=200, summary="Create a thread", operation_class=documented(body=_NEW_THREAD))
    async def create_thread(request: AnyRequest) -> Response[Any]:
        thread_id, metadata, if_exists = _read_new_thread(await _optional_object(await request.body()))
        caller = caller_of(request)
        thread = await threads.create(thread_id, metadata=metadata, if_exists=if_exists, caller=caller)
        return json_answer(await _described(services, thread, caller, fresh=if_exists == "raise"))

    @get("/threads/{thread_id:str}", summary="One thread with its newest values")
    async def read_thread(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        caller = caller_of(request)
        thread = await threads.get(checked_id(thread_id, "thread_id"), caller=caller)
        return json_answer(await _described(services, thread, caller))

    @delete("/threads/{thread_id:str}", status_code=200, summary="Stop its run, remove it; whether there was one")
    async def delete_thread(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        deleted = await threads.delete(checked_id(thread_id, "thread_id"), caller=caller_of(request))
        return json_answer({"deleted": deleted})

    @get("/threads/{thread_id:str}/state", summary="The newest checkpoint as LangGraph's clients read it")
    async def read_state(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        return json_answer(await threads.state(checked_id(thread_id, "thread_id"), caller=caller_of(request)))

    @get("/threads/{thread_id:str}/interrupts", summary="What waits for a person on this thread")
    async def read_interrupts(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        caller, checked = caller_of(request), checked_id(thread_id, "thread_id")
        await threads.get(checked, caller=caller)
        waiting = await services.host.runs.interrupts(checked, caller=caller)
        return json_answer({"interrupts": [_interrupt(found) for found in waiting]})

    @get("/inbox", summary="What waits for a person on any thread, oldest first")
    async def read_inbox(request: AnyRequest) -> Response[Any]:
        waiting = await services.host.runs.interrupts(caller=caller_of(request))
        return json_answer({"interrupts": [_interrupt(found) for found in waiting]})

    return [create_thread, read_thread, delete_thread, read_state, read_interrupts, read_inbox]


def _interrupt(found: Interrupt) -> dict[str, Any]:
    return {
        "interruptId": found.interrupt_id,
        "threadId": found.thread_id,
        "runId": found.run_id,
        "kind": found.kind.value,
        "namespace": list(found.namespace),
        "payload": dict(found.payload),
        "createdAt": _iso(found.created_at),
    }


async def _optional_object(body: bytes) -> Mapping[str, Any]:
    """No body counts as `{}`. A broken one is told: a thread with another id than was asked for helps nobody."""
    if not body.strip():
        return {}
    value = await decode(body)
    if not isinstance(value, dict):
        raise _refused("body", "must be a JSON object, or empty")
    return value


def _read_new_thread(body: Mapping[str, Any]) -> tuple[str | None, dict[str, Any], str]:
    thread_id, metadata = body.get("thread_id"), body.get("metadata")
    if_exists = body.get("if_exists")
    if thread_id is not None and not isinstance(thread_id, str):
        raise _refused("thread_id", "must be a string")
    if metadata is not None and not isinstance(metadata, dict):
        raise _refused("metadata", "must be an object")
    if if_exists is not None and if_exists not in IF_EXISTS:
        raise _refused("if_exists", f"must be one of {', '.join(IF_EXISTS)}")
    return thread_id, metadata or {}, if_exists or "raise"


def _refused(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_request", f"`{field}` {problem}", fields={field: problem})


async def _described(services: Services, thread: Thread, caller: Caller, *, fresh: bool = False) -> dict[str, Any]:
    """LangGraph's thread. One that nothing was said in has no state yet, and the graph need not be loaded for it."""
    values: Mapping[str, Any] = {}
    interrupts: dict[str, Any] = {}
    if thread.next_seq > 1:
        state = await services.host.threads.state(thread.thread_id, caller=caller)
        values = state["values"]
        interrupts = {task["id"]: task["interrupts"] for task in state["tasks"] if task["interrupts"]}
    return {
        "thread_id": thread.thread_id,
        "created_at": _iso(thread.created_at),
        "updated_at": _iso(thread.last_activity_at),
        "metadata": dict(thread.metadata),
        "status": "idle" if fresh else await services.host.threads.status(thread.thread_id, caller=caller),
        "values": values,
        "interrupts": interrupts,
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
