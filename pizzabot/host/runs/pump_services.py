"""What a pump uses of its host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pizzabot.host.runs.hub import Hub
from pizzabot_hookspecs import Caller, Logger
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, AgentSettings, ChosenModel
from pizzabot_hookspecs.files import TurnFiles
from pizzabot_hookspecs.storage_backends import Run, Storage


class Models(Protocol):
    async def resolve(self, model_id: str | None, /) -> ChosenModel: ...


async def no_files(_run: Run, _turn_id: str) -> TurnFiles:
    return TurnFiles()


async def no_changes(_run: Run) -> Mapping[str, Any] | None:
    return None


async def default_settings(_caller: Caller) -> AgentSettings:
    return AgentSettings()


@dataclass(frozen=True, kw_only=True)
class PumpServices:
    """`files` gives a run of a turn its files, `settings` what its owner set; `changes` says what a run that ends did
    to files: `{files, truncated}`, None for nothing. It never raises, and takes a few seconds at most."""

    storage: Storage
    hub: Hub
    models: Models
    runtime: Callable[[], Awaitable[AgentRuntime]]
    started: Callable[[Run], None]
    clock: Callable[[], float]
    redact: Callable[[str], str]
    logger: Logger
    files: Callable[[Run, str], Awaitable[TurnFiles]] = no_files
    changes: Callable[[Run], Awaitable[Mapping[str, Any] | None]] = no_changes
    settings: Callable[[Caller], Awaitable[AgentSettings]] = default_settings
