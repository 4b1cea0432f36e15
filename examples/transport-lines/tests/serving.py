"""What the tests are made with: the transport serving a scripted host, and a raw connection to it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pizzabot_lines.settings import LinesSettings
from pizzabot_lines.transport import LinesTransport, create

from pizzabot_hookspecs import Context
from pizzabot_hookspecs.host import Host

TOKEN = "x" * 32


class RecordingLogger:
    """A `Logger` that keeps the names of events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def debug(self, event: str, **_facts: Any) -> None:
        self.events.append(event)

    info = warning = error = exception = debug


class NoSecrets:
    def resolve(self, reference: object, /) -> str:
        raise LookupError(reference)


def transport_for(
    host: Host, data_root: Path, section: Mapping[str, Any], logger: RecordingLogger | None = None
) -> LinesTransport:
    context = Context(
        name="lines",
        data_root=data_root,
        logger=logger or RecordingLogger(),
        secrets=NoSecrets(),
        clock=time.time,
        redact=lambda text: text.replace("hunter2", "[redacted]"),
        host=host,
    )
    return create(context, LinesSettings.model_validate(section))


@asynccontextmanager
async def served(
    host: Host, data_root: Path, section: Mapping[str, Any], logger: RecordingLogger | None = None
) -> AsyncIterator[str]:
    """The address of a transport that serves `host`; it has stopped when the context ends."""
    async with transport_for(host, data_root, section, logger) as transport:
        await transport.bind()
        serving = asyncio.create_task(transport.serve())
        try:
            yield transport.address
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


class RawClient:
    """Lines as they are, for what a well-behaved client never says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, address: str) -> RawClient:
        """A client that reads ahead no more than 256 KiB: what is sent beyond that waits at the server."""
        if address.startswith("unix:"):
            return cls(*await asyncio.open_unix_connection(address.removeprefix("unix:"), limit=128 * 1024))
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=128 * 1024))

    def send(self, *requests: object) -> None:
        for request in requests:
            text = request if isinstance(request, bytes) else json.dumps(request).encode() + b"\n"
            self.writer.write(text)

    async def hear(self) -> dict[str, Any] | None:
        """The next line; None when the server has closed the connection."""
        try:
            line = await self.reader.readline()
        except ConnectionResetError:  # closed while something that we had said was not read yet
            return None
        return json.loads(line) if line else None

    async def ask(self, request: object) -> dict[str, Any]:
        self.send(request)
        heard = await self.hear()
        assert heard is not None, "the server has closed the connection"
        return heard

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return
