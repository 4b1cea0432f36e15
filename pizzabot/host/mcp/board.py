"""`McpBoard`: the servers as they are defined now, a supervisor for each, and what is known of them.

Nothing here is on the way of a start or a turn: whoever reads gets what is known at that moment. It implements the
`Servers` of skills.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pizzabot.host.mcp.definitions_reading import Defined, Definitions, Merged
from pizzabot.host.mcp.enablement import ServerEnablement
from pizzabot.host.mcp.endpoints import endpoint_of, secrets_of
from pizzabot.host.mcp.limits import WATCH_AGAIN_SECONDS
from pizzabot.host.mcp.supervisor import Health, Services, Supervisor
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot_hookspecs import Conflict, Logger, Secrets
from pizzabot_hookspecs.mcp_clients import McpEndpoint
from pizzabot_hookspecs.mcp_servers import McpServerSource, WatchesMcpServers
from pizzabot_hookspecs.wire import JsonValue

_DISABLED = ServerState(status=ServerStatus.DISABLED, detail="disabled")


@dataclass(frozen=True, kw_only=True)
class BoardSettings:
    """`path` are folders of programs before those of `PATH`; `trusted` the ids of servers whose hints count.

    `hide` has these texts redacted from now on.
    """

    trusted: Collection[str] = ()
    path: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    hide: Callable[..., None] = lambda *_secrets: None


class McpBoard:
    """Owned by one host, used from its loop. `sources` makes the sources, once, behind the listener."""

    def __init__(
        self,
        *,
        services: Services,
        sources: Callable[[], Awaitable[Sequence[tuple[str, McpServerSource]]]],
        secrets: Secrets,
        enablement: ServerEnablement,
        settings: BoardSettings,
        logger: Logger,
    ) -> None:
        self.enablement = enablement
        self._services = services
        self._make_sources = sources
        self._secrets = secrets
        self._settings = settings
        self._logger = logger
        self._definitions = Definitions(logger, services.redact)
        self._merged = Merged()
        self._supervisors: dict[str, Supervisor] = {}
        self._callbacks: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._endings: set[asyncio.Task[None]] = set()
        self._first = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._closed = False

    def start(self) -> None:
        self._tasks.append(asyncio.create_task(self._begin(), name="mcp servers"))

    async def ready(self) -> None:
        """Until every source was asked once; servers are being connected then."""
        await self._first.wait()

    def known(self) -> bool:
        """Whether every source was asked once, with whatever came of it."""
        return self._first.is_set()

    async def close(self) -> None:
        """End every session, those that are kept for runs too."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        async with self._reloading:
            supervisors, self._supervisors = self._supervisors, {}
            await asyncio.gather(*(one.stop(retire=False) for one in supervisors.values()), return_exceptions=True)
        await asyncio.gather(*self._endings, return_exceptions=True)
        await self._services.retiring.close()

    @property
    def sources(self) -> Mapping[str, McpServerSource]:
        return self._definitions.sources

    @property
    def merged(self) -> Merged:
        """What is defined, as it was read last."""
        return self._merged

    def states(self) -> Mapping[str, ServerState]:
        return {server_id: self.state(defined) for server_id, defined in self._merged.servers.items()}

    def state(self, defined: Defined) -> ServerState:
        if defined.entry is None:
            return ServerState(status=ServerStatus.ERROR, detail=defined.fault)
        if not self.enabled(defined):
            return _DISABLED
        supervisor = self._supervisors.get(defined.id)
        return supervisor.state if supervisor is not None else ServerState(status=ServerStatus.LOADING)

    def health(self, server_id: str) -> Health:
        supervisor = self._supervisors.get(server_id)
        return supervisor.health if supervisor is not None else Health()

    def enabled(self, defined: Defined) -> bool:
        wish = self.enablement.wish(defined.owner_key, defined.id)
        return wish if wish is not None else defined.entry is not None and defined.entry.enabled

    def trusted(self, server_id: str, /) -> bool:
        return server_id in self._settings.trusted

    def on_change(self, callback: Callable[[], None], /) -> None:
        self._callbacks.append(callback)

    async def reload(self) -> None:
        """Read the definitions again and follow them. A server whose entry is the same keeps its session."""
        async with self._reloading:
            if self._closed:
                return
            merged = await self._definitions.read()
            before, self._merged = self._merged, merged
            await self._follow(before)
            self._first.set()
        self._tell()

    async def reconnect(self, server_id: str) -> None:
        """One attempt now. Raises `Conflict` `mcp_not_reconnectable` unless the server is in error or crashed."""
        state = self.states().get(server_id)
        supervisor = self._supervisors.get(server_id)
        if supervisor is None or state is None or state.status not in {ServerStatus.ERROR, ServerStatus.CRASHED}:
            status = "not connected by anybody" if state is None else state.status.value
            raise Conflict(
                "mcp_not_reconnectable",
                f'MCP server "{server_id}" is {status}: only one in error or crashed is connected anew',
            )
        await supervisor.reconnect()

    async def _begin(self) -> None:
        """The sources, then the servers. Enablement comes first: a disabled server is never started."""
        try:
            await self.enablement.load()
            for name, source in await self._make_sources():
                self._definitions.sources[name] = source
            await self.reload()
        except Exception as error:
            self._logger.exception("mcp.start_failed", cause=type(error).__name__)
            self._first.set()
            self._tell()
        watches = [
            self._watch(name, source) for name, source in self.sources.items() if isinstance(source, WatchesMcpServers)
        ]
        await asyncio.gather(*watches)

    async def _watch(self, name: str, source: WatchesMcpServers) -> None:
        while True:
            try:
                # A generator in all but its Protocol: closing it ends what it holds.
                async with aclosing(cast("Any", source.changes())) as changes:
                    async for _ in changes:
                        await self.reload()
            except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and tried again
                self._logger.error("mcp.watch_failed", source=name, cause=type(error).__name__, detail=str(error))
            await asyncio.sleep(WATCH_AGAIN_SECONDS)
            await self.reload()

    async def _follow(self, before: Merged) -> None:
        """End what is gone, changed or switched off; begin what is new. Sessions of running turns are kept a while."""
        wanted = {
            server_id: defined
            for server_id, defined in self._merged.servers.items()
            if defined.entry is not None and self.enabled(defined)
        }
        for server_id in list(self._supervisors):
            now, was = wanted.get(server_id), before.servers.get(server_id)
            if now is None or was is None or not now.same_server(was):
                ending = asyncio.create_task(self._supervisors.pop(server_id).stop(retire=True))
                self._endings.add(ending)  # one in the middle of connecting takes seconds: nobody waits for it
                ending.add_done_callback(self._endings.discard)
        for server_id, defined in wanted.items():
            if server_id not in self._supervisors:
                self._supervise(defined)

    def _supervise(self, defined: Defined) -> None:
        entry = defined.entry
        assert entry is not None  # noqa: S101 - only such are wanted
        supervisor = Supervisor(
            defined.id,
            self._services,
            endpoint=lambda: self._endpoint(defined),
            hides=entry.hides,
            changed=self._tell,
        )
        self._supervisors[defined.id] = supervisor
        supervisor.start()

    async def _endpoint(self, defined: Defined) -> McpEndpoint:
        entry = defined.entry
        assert entry is not None  # noqa: S101 - only such are supervised
        root: Path | None = defined.definition.root
        settings = self._settings

        def resolved() -> McpEndpoint:
            made = endpoint_of(
                defined.id, entry, root=root, secrets=self._secrets, path=settings.path, environ=settings.environ
            )
            settings.hide(*secrets_of(made))
            return made

        return await asyncio.to_thread(resolved)

    def status(self) -> dict[str, JsonValue]:
        """`/status.mcp` of spec/01 §10: `loaded` there is `connected` here."""
        rows: list[JsonValue] = []
        loaded = disabled = 0
        for server_id, state in self.states().items():
            loaded += state.status is ServerStatus.CONNECTED
            disabled += state.status is ServerStatus.DISABLED
            rows.append(self._status_row(server_id, state))
        total = len(rows) - disabled
        return {
            "available": total > 0 and loaded == total,
            "loaded": loaded,
            "total": total,
            "disabled": disabled,
            "servers": rows,
        }

    def _status_row(self, server_id: str, state: ServerState) -> dict[str, JsonValue]:
        connected = state.status is ServerStatus.CONNECTED
        row: dict[str, JsonValue] = {
            "name": server_id,
            "status": "loaded" if connected else state.status.value,
            "toolCount": len(state.tools),
        }
        return row | health_row(state, self.health(server_id)) | self._stderr(server_id)

    def _stderr(self, server_id: str) -> dict[str, JsonValue]:
        lines = self.health(server_id).stderr
        return {"stderrTail": [*lines]} if lines else {}

    def _tell(self) -> None:
        for callback in self._callbacks:
            try:
                callback()
            except Exception as error:
                self._logger.exception("mcp.callback_failed", cause=type(error).__name__)


def health_row(state: ServerState, health: Health) -> dict[str, JsonValue]:
    """`crashedAt` in milliseconds and `detail`, where there are any."""
    row: dict[str, JsonValue] = {}
    if health.crashed_at is not None:
        row["crashedAt"] = round(health.crashed_at * 1_000)
    if state.detail and state.status is not ServerStatus.DISABLED:
        row["detail"] = state.detail
    return row
