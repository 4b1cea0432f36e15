"""A file that the host has, on its way out: an ASGI application that closes it whoever goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from pizzabot_builtin_plugins.http_server.access_log import unforeseen
from pizzabot_builtin_plugins.http_server.asgi import ABORT, REQUEST_ID, Receive, Send, send_error, state
from pizzabot_builtin_plugins.http_server.errors import status_of
from pizzabot_builtin_plugins.http_server.event_streams import until_disconnected
from pizzabot_hookspecs import Logger, PizzabotError
from pizzabot_hookspecs.host import Export
from pizzabot_hookspecs.http_routes import Scope

AS_OF_SEQ = "Pizzabot-As-Of-Seq"
TURNS = "Pizzabot-Turns"


class _End(Enum):
    COMPLETE = auto()
    STALLED = auto()
    BROKEN = auto()


class _WrongLengthError(Exception):
    """The host's file is not as long as it said."""


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """An answer with a body of `size` bytes, or with none where `chunks` is None."""

    headers: Mapping[str, str]
    size: int
    chunks: AsyncGenerator[bytes, None] | None
    status: int = 200


@dataclass(frozen=True, kw_only=True)
class Download:
    """`make` makes the file, and is cancelled when the client goes. Refusals are statuses: nothing was sent by then.

    What breaks afterwards drops the connection, so that no client takes a part for the whole; `Content-Length` says so
    as well. A client that does not take a piece within `write_seconds` is let go.
    """

    make: Callable[[], Awaitable[Outgoing]]
    logger: Logger
    redact: Callable[[str], str]
    write_seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = str(state(scope).get(REQUEST_ID, ""))
        writing = asyncio.create_task(self._write(send, request_id))
        gone = asyncio.create_task(until_disconnected(receive))
        try:
            await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            writing.cancel()
            gone.cancel()
            await asyncio.gather(writing, gone, return_exceptions=True)
        if not writing.cancelled() and writing.result() is not _End.COMPLETE:
            state(scope).get(ABORT, lambda: None)()

    async def _write(self, send: Send, request_id: str) -> _End:
        try:
            outgoing = await self.make()
        except PizzabotError as error:
            await send_error(send, status_of(error), error.code, self.redact(error.detail), fields=error.fields)
            return _End.COMPLETE
        except Exception:
            self.logger.exception("http.download.failed", request_id=request_id)
            await send_error(send, 500, "internal_error", unforeseen(request_id))
            return _End.COMPLETE
        chunks = outgoing.chunks
        try:
            headers = [(name.encode(), value.encode("latin-1")) for name, value in outgoing.headers.items()]
            await send({"type": "http.response.start", "status": outgoing.status, "headers": headers})
            if chunks is None:
                await send({"type": "http.response.body", "body": b""})
            else:
                await self._send_all(send, chunks, outgoing.size)
        except TimeoutError:
            self.logger.warning("http.download.stalled", request_id=request_id, seconds=self.write_seconds)
            return _End.STALLED
        except Exception:
            self.logger.exception("http.download.failed", request_id=request_id)
            return _End.BROKEN
        finally:
            if chunks is not None:
                await chunks.aclose()
        return _End.COMPLETE

    async def _send_all(self, send: Send, chunks: AsyncGenerator[bytes, None], expected: int) -> None:
        """Each chunk goes when the next one is there, the last one only when the length is right."""
        held, size = b"", 0
        async for chunk in chunks:
            size += len(chunk)
            if size > expected:
                break
            await self._piece(send, held, more=True)
            held = chunk
        if size != expected:
            raise _WrongLengthError(f"the file was to have {expected} bytes; there are {size} or more")
        await self._piece(send, held, more=False)

    async def _piece(self, send: Send, body: bytes, *, more: bool) -> None:
        async with asyncio.timeout(self.write_seconds):
            await send({"type": "http.response.body", "body": body, "more_body": more})


def outgoing_export(export: Export) -> Outgoing:
    name = "".join(
        one if one.isascii() and one.isprintable() and one not in '"\\/' else "_" for one in export.file_name
    )
    headers = {
        "content-type": export.media_type,
        "content-length": str(export.size),
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "private, no-cache",
        "x-content-type-options": "nosniff",
        AS_OF_SEQ.lower(): str(export.as_of_seq),
        TURNS.lower(): str(export.turns),
    }
    return Outgoing(headers=headers, size=export.size, chunks=export.chunks)
