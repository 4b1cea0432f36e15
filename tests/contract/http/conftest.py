"""A real HTTP transport on a free port of loopback, with a scripted host behind it."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_builtin_plugins.http_server.settings import HttpSettings
from pizzabot_builtin_plugins.http_server.transport import HttpTransport
from pizzabot_hookspecs import Context, Secrets

sys.path.insert(0, str(Path(__file__).parent))  # `socket_client`


@dataclass
class RecordedLog:
    """A logger that keeps what it is told."""

    lines: list[tuple[str, str, dict]] = field(default_factory=list)
    waiting: list[tuple[str, asyncio.Event]] = field(default_factory=list)

    def _keep(self, level, event, facts):
        self.lines.append((level, event, facts))
        for name, noticed in self.waiting:
            if name == event:
                noticed.set()

    async def noticed(self, event):
        """Wait until `event` is in the log."""
        arrived = asyncio.Event()
        self.waiting.append((event, arrived))
        if not self.of(event):
            await arrived.wait()

    def debug(self, event, **facts):
        self._keep("debug", event, facts)

    def info(self, event, **facts):
        self._keep("info", event, facts)

    def warning(self, event, **facts):
        self._keep("warning", event, facts)

    def error(self, event, **facts):
        self._keep("error", event, facts)

    def exception(self, event, **facts):
        self._keep("exception", event, facts)

    def of(self, event):
        return [(level, facts) for level, name, facts in self.lines if name == event]


class NoSecrets(Secrets):
    def resolve(self, reference, /):
        raise AssertionError(reference)


@dataclass(frozen=True, kw_only=True)
class Served:
    transport: HttpTransport
    log: RecordedLog
    serving: asyncio.Task

    @property
    def address(self):
        return self.transport.address

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def make_transport(tmp_path: Path):
    def make(host: ScriptedHost | None, log: RecordedLog | None = None, /, **settings) -> HttpTransport:
        context = Context(
            name="http",
            data_root=tmp_path,
            logger=log or RecordedLog(),
            secrets=NoSecrets(),
            clock=time.time,
            redact=lambda text: text.replace("hunter2", "<redacted>"),
            host=host,
        )
        return HttpTransport(context, HttpSettings(**{"port": 0, **settings}))

    return make


@pytest.fixture
def serve(make_transport) -> Serve:
    @asynccontextmanager
    async def served(host: ScriptedHost, /, **settings) -> AsyncIterator[Served]:
        log = RecordedLog()
        transport = make_transport(host, log, **settings)
        await transport.bind()
        serving = asyncio.create_task(transport.serve())
        try:
            yield Served(transport=transport, log=log, serving=serving)
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving

    return served
