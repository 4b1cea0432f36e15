"""`LiveSkills`: catalogue, readiness and roster as they are now, made anew behind the loop whenever something changes.

One task rebuilds: sources are asked, everything is parsed, merged and expanded in a thread, and the result is swapped
in at once. Whoever reads gets the newest finished one without waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from pizzabot.host.skills.catalogue import Catalogue, SkillParser, merge
from pizzabot.host.skills.enablement import Enablement
from pizzabot.host.skills.readiness import Readiness
from pizzabot.host.skills.roster import Prepared, RosterBuilder
from pizzabot.host.skills.servers import Servers, ServerState
from pizzabot.host.skills.skill import Skill
from pizzabot_hookspecs import Logger, PizzabotError, Unavailable
from pizzabot_hookspecs.agent_runtimes import EMPTY_ROSTER, Roster
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.skill_sources import RawSkill, SkillSource, WatchesSkills

SOURCE_SECONDS = 30.0
"""For a source to tell its bundles; then what it told before stays."""
WATCH_AGAIN_SECONDS = 5.0
"""After a watch that broke; the source is asked again then, so nothing is missed."""


class LiveSkills:
    """Owned by one host, used from its loop."""

    def __init__(
        self, *, servers: Servers, enablement: Enablement, logger: Logger, redact: Callable[[str], str] = str
    ) -> None:
        self.servers = servers
        self._enablement = enablement
        self._logger = logger
        self._redact = redact
        self._sources: dict[str, SkillSource] = {}
        self._bundles: dict[str, Sequence[RawSkill]] = {}
        self._failed: dict[str, str] = {}
        self._parser = SkillParser()
        self._builder = RosterBuilder()
        self._tools: Sequence[AgentTool] = ()
        self._callbacks: list[Callable[[], None]] = []
        self._wake = asyncio.Event()
        self._dirty: set[str] = set()
        self._waiting: list[asyncio.Future[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._first = asyncio.Event()
        self._closed = False
        self.catalogue = Catalogue()
        self._prepared = Prepared(roster=EMPTY_ROSTER, readiness={})

    def add(self, name: str, source: SkillSource) -> None:
        """Before `start`; the order of the calls is the order of the sources."""
        self._sources[name] = source

    @property
    def sources(self) -> Mapping[str, SkillSource]:
        return self._sources

    def start(self) -> None:
        self._dirty |= set(self._sources)
        self._wake.set()
        self._tasks.append(asyncio.create_task(self._work(), name="skills"))
        for name, source in self._sources.items():
            if isinstance(source, WatchesSkills):
                self._tasks.append(asyncio.create_task(self._watch(name, source), name=f"skills of {name}"))
        self.servers.on_change(self._wake.set)

    async def ready(self) -> None:
        """Until every source was asked once, with whatever came of it."""
        await self._first.wait()

    async def close(self) -> None:
        """Whoever waits for a refresh is told that there is none."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        _settle(self._waiting, _stopping())

    def roster(self) -> Roster:
        """Prepared; takes no time."""
        return self._prepared.roster

    @property
    def readiness(self) -> Mapping[str, Readiness]:
        """By skill id, of the same moment as `catalogue`."""
        return self._prepared.readiness

    def on_roster_change(self, changed: Callable[[], None], /) -> None:
        self._callbacks.append(changed)

    async def use_tools(self, tools: Sequence[AgentTool]) -> None:
        """The orchestrator's own tools, part of every roster from now on."""
        self._tools = tools
        await self.refresh()

    async def refresh(self, *sources: str) -> None:
        """Ask these sources again and rebuild; when it returns, whatever was written before the call is in.

        Raises `Unavailable` `server_stopping` once it is closed.
        """
        if self._closed:
            raise _stopping()
        self._dirty |= set(sources)
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wake.set()
        await done

    async def _watch(self, name: str, source: WatchesSkills) -> None:
        while True:
            try:
                # A generator in all but its Protocol: closing it ends what it holds.
                async with aclosing(cast("Any", source.changes())) as changes:
                    async for _ in changes:
                        self._dirty.add(name)
                        self._wake.set()
            except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and tried again
                self._logger.error("skills.watch_failed", source=name, cause=type(error).__name__, detail=str(error))
            await asyncio.sleep(WATCH_AGAIN_SECONDS)
            self._dirty.add(name)
            self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            dirty, self._dirty = self._dirty, set()
            waiting, self._waiting = self._waiting, []
            try:
                await self._rebuild(dirty)
            except asyncio.CancelledError:
                _settle(waiting, _stopping())
                raise
            except Exception as error:
                self._dirty |= dirty
                self._logger.exception("skills.rebuild_failed", cause=type(error).__name__)
                _settle(waiting, error)
            else:
                _settle(waiting, None)
            self._first.set()

    async def _rebuild(self, dirty: set[str]) -> None:
        for name in self._sources:
            if name in dirty:
                await self._ask(name)
        states = dict(self.servers.states())
        trusted = {server for server in states if self.servers.trusted(server)}
        disabled, tools, known = self._enablement.disabled, self._tools, self.servers.known()
        before = self._prepared.roster.fingerprint
        catalogue, prepared = await asyncio.to_thread(self._build, states, trusted, disabled, tools, known)
        self.catalogue, self._prepared = catalogue, prepared
        if prepared.roster.fingerprint != before:
            self._tell()

    async def _ask(self, name: str) -> None:
        try:
            async with asyncio.timeout(SOURCE_SECONDS):
                self._bundles[name] = await self._sources[name].skills()
        except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and the rest goes on
            cause = error.detail if isinstance(error, PizzabotError) else f"{type(error).__name__}: {error}"
            kept = "; what it had before is used" if name in self._bundles else ""
            self._failed[name] = self._redact(f"the source cannot be read: {cause}{kept}")
            self._logger.error("skills.source_failed", source=name, cause=type(error).__name__, detail=str(error))
        else:
            self._failed.pop(name, None)

    def _build(
        self,
        states: Mapping[str, ServerState],
        trusted: set[str],
        disabled: frozenset[tuple[str, str]],
        tools: Sequence[AgentTool],
        known: bool,  # noqa: FBT001 - handed to a thread
    ) -> tuple[Catalogue, Prepared]:
        """In a thread, one at a time."""
        parsed: dict[str, Sequence[Skill]] = {}
        failed = dict(self._failed)
        for name in self._sources:
            try:
                parsed[name] = self._parser.parse(name, self._bundles.get(name, ()))
            except Exception as error:  # noqa: BLE001 - what a plugin returned is not what it has to be
                failed[name] = f"the source returned what is no skill: {type(error).__name__}: {error}"
        catalogue = merge(parsed, failed)
        prepared = self._builder.build(
            catalogue.skills.values(),
            states,
            enabled=lambda skill: (skill.owner_key, skill.id) not in disabled,
            trusted=trusted.__contains__,
            own=tools,
            known=known,
        )
        return catalogue, prepared

    def _tell(self) -> None:
        for callback in self._callbacks:
            try:
                callback()
            except Exception as error:
                self._logger.exception("skills.callback_failed", cause=type(error).__name__)


def _stopping() -> Unavailable:
    return Unavailable("server_stopping", "the server is stopping")


def _settle(waiting: Sequence[asyncio.Future[None]], error: Exception | None) -> None:
    for one in waiting:
        if one.done():
            continue
        if error is None:
            one.set_result(None)
        else:
            one.set_exception(error)
