"""`PizzabotHost`: the use cases put together on one storage and one runtime, opened and closed in order.

Opening: storage, runtime, models, runs, observers; then transports bind and serve. Closing is the reverse, storage
last: transports end their streams, observers hear of it, runs are let go, what plugins made is closed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

from pizzabot import __version__
from pizzabot.host.activity import ActivityBoard
from pizzabot.host.attachments.use_case import HostAttachments
from pizzabot.host.bundles.assembly import BundleParts
from pizzabot.host.bundles.use_case import HostBundles
from pizzabot.host.conversations import conversations
from pizzabot.host.files.pool import FilePool
from pizzabot.host.folders import HostFolders
from pizzabot.host.folders.rules import FolderRules, folder_rules
from pizzabot.host.ground import Ground
from pizzabot.host.ids import uuid7
from pizzabot.host.mcp.dependents import dependents_of
from pizzabot.host.mcp.making import make_board
from pizzabot.host.mcp.use_case import HostMcpServers
from pizzabot.host.memories import HostMemories
from pizzabot.host.models.advice import ways
from pizzabot.host.models.catalogue import Catalogue
from pizzabot.host.models.registry import ModelRegistry, split_model_id
from pizzabot.host.observers import ObserverBoard
from pizzabot.host.plugins.making import PluginMaker
from pizzabot.host.preferences import HostPreferences
from pizzabot.host.providers import Providers
from pizzabot.host.readiness import Background, Readiness
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.hub import Hub
from pizzabot.host.runs.policies import Policies
from pizzabot.host.runs.pump_services import PumpServices
from pizzabot.host.runs.use_case import HostRuns
from pizzabot.host.skills.assembly import make_skills
from pizzabot.host.skills.use_case import HostSkills
from pizzabot.host.threads.use_case import HostThreads
from pizzabot.host.tools import collect_tools
from pizzabot.host.transcripts.keeping import TranscriptKeeper
from pizzabot.host.transcripts.reading import TranscriptReader
from pizzabot.host.transcripts.use_case import HostTranscripts
from pizzabot.host.workspace.parts import FileParts
from pizzabot.host.workspace.use_case import HostWorkspace
from pizzabot.kernel import PluginReport
from pizzabot_hookspecs import Caller, PizzabotError
from pizzabot_hookspecs.agent_middleware import AgentMiddlewareSource
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, RuntimeServices
from pizzabot_hookspecs.host import Activity, Health
from pizzabot_hookspecs.http_routes import HttpRoutes
from pizzabot_hookspecs.storage_backends import Run, Storage
from pizzabot_hookspecs.wire import PROTOCOL_VERSION, JsonValue


class PizzabotHost:
    """Implements `pizzabot_hookspecs.host.Host`. Made by `open_host`."""

    def __init__(
        self, ground: Ground, maker: PluginMaker, storage: Storage, runtime: AgentRuntime, rules: FolderRules
    ) -> None:
        self.ground = ground
        self.storage = storage
        self.maker = maker
        self._runtime = runtime
        self._logger = ground.logger("host")
        self._hub = Hub()
        self.file_pool = FilePool()
        self.preferences = HostPreferences(storage)
        self.memories = HostMemories(ground.data_root, enabled=self.preferences.memories_enabled, pool=self.file_pool)
        self.folders = HostFolders(storage, rules, pool=self.file_pool, clock=ground.clock)
        self._activity = ActivityBoard(storage)
        self.observers = ObserverBoard(ground.logger("observers"))
        self._keeper = TranscriptKeeper(storage, logger=ground.logger("transcripts"))
        self._reader = TranscriptReader(storage, behind=self._keeper.behind)
        self.files = self._file_parts()
        self.policies = Policies(ground.logger("admission"))
        self._providers = Providers(ground, maker)
        self.registry = self._make_registry()
        self.mcp_board = make_board(ground, maker, storage, runs_ended=self._runs_of_now_ended)
        self.skill_parts = make_skills(
            ground, storage, model=lambda: self.registry.resolve(None), servers=self.mcp_board
        )
        self.mcp_servers = HostMcpServers(
            self.mcp_board, redact=ground.redact, dependents=dependents_of(self.skill_parts)
        )
        self.bundle_parts = BundleParts(ground, maker, self.skill_parts, self.mcp_board)
        self.runtime_loading = Background(
            "runtime",
            self._prepare_runtime,
            logger=self._logger,
            clock=ground.clock,
            redact=ground.redact,
        )
        self.model_loading = Background(
            "model", self._load_default_model, logger=self._logger, clock=ground.clock, redact=ground.redact
        )
        self.engine = RunEngine(
            PumpServices(
                storage=storage,
                hub=self._hub,
                models=self.registry,
                runtime=self.runtime,
                started=self.observers.run_started,
                clock=ground.clock,
                redact=ground.redact,
                logger=ground.logger("runs"),
                files=self.files.of_turn,
                changes=self.files.told_changes,
                settings=self.preferences.agent_settings,
            ),
            server_id=f"{os.getpid()}-{uuid7()}",
            finished=self._run_finished,
            changed=self._activity.changed,
            policies=self.policies,
        )
        self._conversations = conversations(
            storage=storage,
            engine=self.engine,
            hub=self._hub,
            models=self.registry,
            runtime=self.runtime,
            changed=self._activity.changed,
            clock=ground.clock,
            redact=ground.redact,
            reader=self._reader,
            files=self.files,
        )
        self.workspace = HostWorkspace(self.files.versions, self.files.paths, self.files.changes, self.engine)
        self._addresses: dict[str, str] = {}
        self._routes: asyncio.Task[Sequence[HttpRoutes]] | None = None

    def _file_parts(self) -> FileParts:
        return FileParts(
            storage=self.storage,
            hub=self._hub,
            turns=self._reader,
            data_root=self.ground.data_root,
            pool=self.file_pool,
            clock=self.ground.clock,
            logger=self.ground.logger("files"),
            memories=self.memories.area,
            folders=self.folders.area,
        )

    def _make_registry(self) -> ModelRegistry:
        models = self.ground.settings.models
        logger = self.ground.logger("models")
        return ModelRegistry(
            make_provider=self._providers.make,
            uses=self._providers.uses,
            default=models.default,
            fallback=models.fallback,
            catalogue=Catalogue(clock=self.ground.clock, logger=logger, redact=self.ground.redact),
            logger=logger,
        )

    @property
    def attachments(self) -> HostAttachments:
        return self.files.attachments

    @property
    def threads(self) -> HostThreads:
        return self._conversations.threads

    @property
    def runs(self) -> HostRuns:
        return self._conversations.runs

    @property
    def transcripts(self) -> HostTranscripts:
        return self._conversations.transcripts

    async def _runs_of_now_ended(self) -> None:
        """Until every run that is active at this moment has ended."""
        for known in list(self.engine.drivers.running.values()):
            await known.settled.wait()

    @property
    def skills(self) -> HostSkills:
        return self.skill_parts.use_case

    @property
    def bundles(self) -> HostBundles:
        return self.bundle_parts.use_case

    def _run_finished(self, run: Run) -> None:
        self._keeper.behind(run.thread_id)
        self.observers.run_finished(run)

    async def runtime(self) -> AgentRuntime:
        """The agent runtime once it is prepared; raises why it is not."""
        await self.runtime_loading.ready()
        return self._runtime

    def model_problem(self) -> str | None:
        """Why no turn can use the default model, as far as that is known before its provider is made."""
        if self.registry.default is None:
            return None
        try:
            self._providers.offer(split_model_id(self.registry.default)[0])
        except PizzabotError as error:
            return self.ground.redact(error.detail)
        return None

    async def _prepare_runtime(self) -> None:
        tools = await collect_tools(self.maker, self.ground.logger("tools"))
        await self.skill_parts.use_tools(tools)
        live = self.skill_parts.live
        await self._runtime.prepare(
            RuntimeServices(
                graph_storage=self.storage,
                roster=live.roster,
                on_roster_change=live.on_roster_change,
                middleware=await self._middleware(),
                cache=self.ground.data_root / "cache",
            )
        )

    async def _middleware(self) -> Sequence[AgentMiddlewareSource]:
        """In the order of the configuration. One that cannot be had is an error: it may be what keeps an agent in."""
        return [
            await self.maker.chosen("agent_middleware", use, section_name="agent_middleware")
            for use in self.ground.settings.agent_middleware.use
        ]

    async def _load_default_model(self) -> None:
        if self.registry.default is not None:
            await self.registry.resolve(None)

    def start(self) -> None:
        """Begin what goes on behind the listener."""
        self.engine.start()
        self._keeper.start()
        self.files.start()
        self.runtime_loading.start()
        self.mcp_board.start()
        self.model_loading.start()

    async def close(self) -> None:
        """End observers and let go of runs; storage is still open afterwards."""
        self._hub.close()
        self._activity.close()
        await self.engine.shutdown()
        await self._keeper.stop()
        await self.files.stop()
        await self.observers.stop()
        await self.model_loading.cancel()
        await self.runtime_loading.cancel()
        await self.bundle_parts.close()
        await self.skill_parts.close()
        await self.mcp_board.close()
        self.file_pool.close()

    def listens(self, transport: str, address: str) -> None:
        self._addresses[transport] = address

    def identity(self) -> Mapping[str, JsonValue]:
        return {
            "service": "pizza-bot",
            "protocolVersion": PROTOCOL_VERSION,
            "apiVersion": str(PROTOCOL_VERSION),
            "version": __version__,
        }

    def health(self) -> Health:
        return Health.UNHEALTHY if self.runtime_loading.state is Readiness.FAILED else Health.HEALTHY

    async def status(self, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002 - the contract's; one owner so far
        default = self.registry.default
        reports = self.ground.plugins.report()
        transports: list[JsonValue] = [{"name": name, "address": at} for name, at in sorted(self._addresses.items())]
        broken: list[JsonValue] = [
            {"name": report.name, "state": report.state.value, "reason": self.ground.redact(report.reason or "")}
            for report in reports
            if report.state.broken
        ]
        to_a_model: list[JsonValue] = [{"title": way.title, "command": way.command} for way in ways()]
        return {
            "version": __version__,
            "model": default,
            "modelState": self._model_state() if default is not None else None,
            "waysToGetAModel": to_a_model if default is None else [],
            "runtime": {"use": self.ground.settings.runtime.use, **self.runtime_loading.to_json()},
            "storage": {"use": self.ground.settings.storage.use},
            "transports": transports,
            "plugins": {"loaded": sum(report.state.value == "loaded" for report in reports), "broken": broken},
            "runs": {"active": self.engine.active},
            "mcp": self.mcp_board.status(),
            "observers": len(self._hub),
            "timezone": datetime.now().astimezone().tzname(),
            "timestamp": datetime.fromtimestamp(self.ground.clock(), UTC).isoformat(),
        }

    def _model_state(self) -> JsonValue:
        """How the default model is; with `answering` and `because` where a fallback stands in for it."""
        state = self.model_loading.to_json()
        passed_over = self.registry.passed_over
        if passed_over is not None:
            state |= {"answering": self.registry.answering, "because": self.ground.redact(passed_over.detail)}
        return state

    async def models(self, *, caller: Caller, refresh: bool = False) -> Mapping[str, JsonValue]:  # noqa: ARG002
        return await self.registry.listing(refresh=refresh)

    def plugins(self, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        return {
            "plugins": [self._plugin_row(report) for report in self.ground.plugins.report()],
            "notes": [self.ground.redact(note) for note in self.ground.plugins.notes()],
            "bundles": [*self.bundles.rows()],
        }

    def _plugin_row(self, report: PluginReport) -> JsonValue:
        """A row of the report; its reason is the plugin's own text and may hold what it should not."""
        reason = None if report.reason is None else self.ground.redact(report.reason)
        return replace(report, reason=reason).to_json()

    async def activity(self, *, idle_seconds: float = 5.0, caller: Caller) -> AsyncGenerator[Activity, None]:
        return self._activity.watch(idle_seconds=idle_seconds, caller=caller)

    async def http_routes(self) -> Sequence[HttpRoutes]:
        if self._routes is None:
            self._routes = asyncio.create_task(self._make_routes(), name="http routes")
        return await asyncio.shield(self._routes)

    async def _make_routes(self) -> Sequence[HttpRoutes]:
        made = await self.maker.acting("http_routes", section_name="http_routes")
        return [routes for _, routes in made]


@asynccontextmanager
async def open_host(ground: Ground) -> AsyncIterator[PizzabotHost]:
    """A host whose storage is open, whose unfinished runs go on, and whose runtime is being loaded.

    Raises a `PizzabotError` when the selected storage or runtime cannot be had; nothing stays open then.
    """
    maker = PluginMaker(ground)
    rules = await asyncio.to_thread(folder_rules, ground.settings, ground.data_root)
    try:
        storage = await maker.chosen("storage_backends", ground.settings.storage.use, section_name="storage")
        runtime = await maker.chosen("agent_runtimes", ground.settings.runtime.use, section_name="runtime")
        host = PizzabotHost(ground, maker, storage, runtime, rules)
        maker.host = host
        for name, observer in await maker.acting("observers", section_name="observers"):
            host.observers.add(name, observer)
        for name, policy in await maker.every("admission_policies", section_name="admission_policies"):
            host.policies.add(name, policy)
        try:
            await host.skill_parts.open(ground, maker)
            await host.bundle_parts.open()
            host.start()
            await host.engine.recover()
            yield host
        finally:
            await host.close()
    finally:
        await maker.lifecycle.aclose()
