"""Commands, the event stream and cancel (spec/01 §4, wire.md §2, §3, §7). Imported by `serve` in a worker thread."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Any

from litestar import Response, post  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253
from litestar.types import ASGIApp  # noqa: TID253

from pizzabot_builtin_plugins.http_server import frames
from pizzabot_builtin_plugins.http_server.commands import idempotency_key, refusal
from pizzabot_builtin_plugins.http_server.errors import COMMAND_STATUSES, status_of
from pizzabot_builtin_plugins.http_server.event_streams import EventStream
from pizzabot_builtin_plugins.http_server.json_bodies import decode
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.reattachment import Reattachment, Watched, is_watcher
from pizzabot_builtin_plugins.http_server.services import (
    AnyRequest,
    Services,
    caller_of,
    checked_id,
    flag,
    json_answer,
)
from pizzabot_builtin_plugins.http_server.subscriptions import CHANNELS, read_subscription, view_of
from pizzabot_hookspecs import InvalidRequest, PizzabotError
from pizzabot_hookspecs.host import ClientView, CommandOutcome, EventBatch, StopOutcome

_COMMAND = {
    "type": "object",
    "required": ["id", "method"],
    "properties": {"id": {"type": "integer"}, "method": {"type": "string"}, "params": {"type": "object"}},
}
_SUBSCRIPTION = {
    "type": "object",
    "required": ["channels"],
    "properties": {
        "channels": {"type": "array", "minItems": 1, "items": {"type": "string", "examples": sorted(CHANNELS)}},
        "namespaces": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        "depth": {"type": "integer", "minimum": 0},
        "since": {"type": "integer", "minimum": -1},
    },
}
_CANCEL_QUERY = {"wait": "1: answer when the run has ended, at most 10 s", "action": "interrupt"}


def run_routes(services: Services) -> list[HTTPRouteHandler]:
    runs = services.host.runs
    reattachment = Reattachment(services.clock)

    @post(
        "/threads/{thread_id:str}/commands",
        status_code=200,
        operation_class=documented(body=_COMMAND),
        summary="One command of the protocol; answers without waiting for the run",
    )
    async def command(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        body: object = None
        try:
            checked_id(thread_id, "thread_id")
            body = await decode(await request.body())
            key = idempotency_key(request.headers.get("idempotency-key"))
            caller = caller_of(request)
            with reattachment.run_starts((caller.owner, thread_id)) as start:
                reply = await runs.command(thread_id, body, caller=caller, idempotency_key=key)
                python = view_of(request.headers.get("user-agent")) is ClientView.PYTHON
                if python and _is_run_start(body) and reply.outcome is CommandOutcome.DONE:
                    start.came_about()
        except PizzabotError as error:
            return _refused_command(services, body, error)
        return json_answer(reply.envelope, status=COMMAND_STATUSES[reply.outcome])

    @post(
        "/threads/{thread_id:str}/stream/events",
        status_code=200,
        operation_class=documented(body=_SUBSCRIPTION, answer="text/event-stream"),
        summary="The thread's events as server-sent events: what is stored, then what comes, for ever",
    )
    async def events(request: AnyRequest, thread_id: FromPath[str]) -> ASGIApp:
        wanted = read_subscription(
            await decode(await request.body()),
            last_event_id=request.headers.get("last-event-id"),
            user_agent=request.headers.get("user-agent"),
        )
        thread, caller = checked_id(thread_id, "thread_id"), caller_of(request)
        silence = services.settings.heartbeat_seconds

        async def observe() -> AsyncGenerator[EventBatch, None]:
            read = partial(runs.observe, thread, since=wanted.since, idle_seconds=silence, caller=caller)
            if not is_watcher(wanted):
                return await read(wanted.filter)
            watch = reattachment.opens((caller.owner, thread))
            try:
                return Watched(watch, await read(replace(wanted.filter, skip_finished=watch.came_first)))
            except BaseException:
                watch.release()
                raise

        return EventStream(  # type: ignore[return-value]  # Litestar's ASGI types are TypedDicts of its own
            observe=observe,
            chunks=lambda batch: frames.chunks(batch, now_ms=int(services.clock() * 1000)),
            streams=services.streams,
            logger=services.logger,
            redact=services.redact,
            write_seconds=services.settings.limits.write_seconds,
        )

    @post(
        "/threads/{thread_id:str}/runs/{run_id:str}/cancel",
        status_code=202,
        operation_class=documented(query=_CANCEL_QUERY),
        summary="Stop that run; 202 at once, or with wait=1 200 when it has ended, 409 when it has not in time",
    )
    async def cancel(request: AnyRequest, thread_id: FromPath[str], run_id: FromPath[str]) -> Response[Any]:
        thread, run = checked_id(thread_id, "thread_id"), checked_id(run_id, "run_id")
        _check_action(request.query_params.get("action", "interrupt"))
        caller = caller_of(request)
        if not flag(request, "wait"):
            outcome = await runs.stop(thread, run, caller=caller, wait_seconds=0)
            return json_answer({"run_id": run, "status": outcome.value}, status=202)
        outcome = await runs.stop(thread, run, caller=caller)
        answer = {"run_id": run, "status": outcome.value}
        if outcome is not StopOutcome.PENDING:
            return json_answer(answer)
        detail = "the run was told to stop and has not ended yet; its last frame will come on the event stream"
        return json_answer({**answer, "error": outcome.value, "detail": detail}, status=409)

    return [command, events, cancel]


def _is_run_start(body: object) -> bool:
    return isinstance(body, dict) and body.get("method") == "run.start"


def _refused_command(services: Services, body: object, error: PizzabotError) -> Response[bytes]:
    """What never reached the command, in the envelope that the command's clients read (wire.md §2)."""
    code = "invalid_argument" if error.code == "invalid_json" else error.code
    return json_answer(refusal(body, code, services.redact(error.detail)), status=status_of(error))


def _check_action(action: str) -> None:
    if action != "interrupt":
        problem = "must be interrupt"
        raise InvalidRequest(
            "invalid_parameter", f"`action` {problem}, not {action[:40]!r}", fields={"action": problem}
        )
