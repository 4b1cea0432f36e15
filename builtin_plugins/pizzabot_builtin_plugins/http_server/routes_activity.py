"""`GET /threads/events`: what changes on the caller's threads, for clients without the socket.

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

from litestar import get  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.types import ASGIApp  # noqa: TID253

from pizzabot_builtin_plugins.http_server.event_streams import EventStream
from pizzabot_builtin_plugins.http_server.frames import HEARTBEAT, named_frame
from pizzabot_builtin_plugins.http_server.json_bodies import encode
from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.rows import activity_message, is_silence
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of
from pizzabot_hookspecs.host import Activity


def activity_routes(services: Services) -> list[HTTPRouteHandler]:
    @get(
        "/threads/events",
        operation_class=documented(answer="text/event-stream"),
        summary="Threads and what waits for a person: everything as it is, then what changes, for ever",
    )
    async def activity(request: AnyRequest) -> ASGIApp:
        caller = caller_of(request)

        async def observe() -> AsyncGenerator[Activity, None]:
            return await services.host.activity(idle_seconds=services.settings.heartbeat_seconds, caller=caller)

        return EventStream(  # type: ignore[return-value]  # Litestar's ASGI types are TypedDicts of its own
            observe=observe,
            chunks=_chunks,
            streams=services.streams,
            logger=services.logger,
            redact=services.redact,
            write_seconds=services.settings.limits.write_seconds,
        )

    return [activity]


def _chunks(told: Activity) -> Iterator[bytes]:
    yield HEARTBEAT if is_silence(told) else named_frame("activity", encode(activity_message(told)))
