"""Going to another branch, forking a thread, shortening the model's context (spec/12 §1.1, docs/use/protocol.md).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, post, put  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server.arguments import MAX_TURN_ID, Arguments, wrong
from pizzabot_builtin_plugins.http_server.commands import idempotency_key
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.rows import thread_row
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, checked_id, json_answer

_TURN = {"type": "string", "pattern": f"^[A-Za-z0-9._~:@-]{{1,{MAX_TURN_ID}}}$"}
_HEAD = {
    "type": "object",
    "required": ["turnId"],
    "properties": {"turnId": _TURN},
    "additionalProperties": False,
}
_FORK = {
    "type": "object",
    "properties": {"turnId": _TURN, "threadId": {"type": "string", "pattern": "^[A-Za-z0-9._~:@-]{1,255}$"}},
    "additionalProperties": False,
}
_NOTHING = {"type": "object", "additionalProperties": False}


def branch_routes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @put(
        "/threads/{thread_id:str}/head",
        operation_class=documented(body=_HEAD),
        summary="Go to the branch of that turn: its leaf that was used last is the head from now on",
    )
    async def choose_head(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, body = checked_id(thread_id, "thread_id"), await Arguments.of_body(request, "turnId")
        turn = body.turn("turnId")
        if turn is None:
            raise wrong("turnId", "must be the id of a turn")
        return json_answer(await host.transcripts.choose_head(thread, turn, caller=caller_of(request)))

    @post(
        "/threads/{thread_id:str}/fork",
        operation_class=documented(body=_FORK),
        summary="A new thread with the conversation up to that turn, or all of it",
    )
    async def fork(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread, body = checked_id(thread_id, "thread_id"), await Arguments.of_body(request, "turnId", "threadId")
        turn, target = body.turn("turnId"), body.text("threadId")
        made = await host.transcripts.fork(
            thread,
            turn,
            new_thread_id=None if target is None else checked_id(target, "threadId"),
            caller=caller_of(request),
        )
        return json_answer(thread_row(made), status=201)

    @post(
        "/threads/{thread_id:str}/compact",
        status_code=200,
        operation_class=documented(body=_NOTHING),
        summary="Shorten the model's context; what a person sees stays",
    )
    async def compact(request: AnyRequest, thread_id: FromPath[str]) -> Response[Any]:
        thread = checked_id(thread_id, "thread_id")
        await Arguments.of_body(request)
        key = idempotency_key(request.headers.get("idempotency-key"))
        done = await host.transcripts.compact(thread, idempotency_key=key, caller=caller_of(request))
        return json_answer(done)

    return [choose_head, fork, compact]
