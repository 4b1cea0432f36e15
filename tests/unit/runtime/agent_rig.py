"""The built-in runtime with files on the disk, a team and settings, and a model that says what a test wrote down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pizzabot.host.files.descriptors import Root
from pizzabot.host.files.disk_area import DiskArea
from pizzabot.host.files.pool import FilePool
from pizzabot.host.folders.area import GrantedArea
from pizzabot.host.folders.grants import Grant
from pizzabot.host.memories.area import MemoryArea
from pizzabot.testing.runtime_contract import MemoryGraphStorage, frames_of, said, tool_results, turn
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import LOCAL, Caller
from pizzabot_hookspecs.agent_runtimes import AgentSettings, Roster, RuntimeServices, SubagentSpec, UnreadySkill
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.files import AttachedFile, FileArea, TurnFiles
from pizzabot_hookspecs.wire import Frame


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


@dataclass
class Shelf:
    """Attachments in memory, by id."""

    files: dict[str, AttachedFile] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, attachment_id: str, /) -> AttachedFile | None:
        self.asked.append(attachment_id)
        return self.files.get(attachment_id)


class Agent:
    """A runtime and what its turns have. Folders of `folder` are the areas; `grants` and `memory_on` may change."""

    def __init__(self, folder: Path, pool: FilePool) -> None:
        self.folder = folder
        self.pool = pool
        self.grants: list[Grant] = []
        self.memory_on = True
        self.attachments = Shelf()
        self.settings = AgentSettings(memories=True)
        self.runtime: DeepAgentsRuntime
        self.roster = Roster()
        self._runs = 0

    def area(self, name: str) -> DiskArea:
        (self.folder / name).mkdir(exist_ok=True)
        return DiskArea(Root(host=str(self.folder.resolve() / name)), self.pool)

    def grant(self, folder_id: str, path: Path, *, read_only: bool = True) -> None:
        path.mkdir(exist_ok=True)
        self.grants.append(Grant(id=folder_id, label=path.name, path=str(path.resolve()), read_only=read_only))

    def files(self) -> TurnFiles:
        async def grants(_caller: Caller) -> Sequence[Grant]:
            return tuple(self.grants)

        async def enabled(_caller: Caller) -> bool:
            return self.memory_on

        async def documents(_caller: Caller) -> FileArea:
            return self.area("memories")

        return TurnFiles(
            workspace=self.area("workspace"),
            memories=MemoryArea(LOCAL, documents=documents, enabled=enabled),
            folders=GrantedArea(LOCAL, grants=grants, pool=self.pool),
            offloads=self.area("offloads"),
            attachments=self.attachments,
        )

    async def say(self, model: ScriptedModel, text: str = "go", *, descriptor: Any = None, **more: Any) -> list[Frame]:
        """The frames of a turn that says `text`."""
        self._runs += 1
        messages = () if more.get("answers") else (said(text, f"u{self._runs}"),)
        choice = chosen(model, **(descriptor or {}))
        return await frames_of(
            self.runtime.start(
                turn(
                    choice,
                    *more.pop("messages", messages),
                    run_id=f"run-{self._runs}",
                    files=self.files(),
                    settings=self.settings,
                    **more,
                )
            )
        )

    async def values(self) -> Mapping[str, Any]:
        state = await self.runtime.state("thread-1", caller=LOCAL)
        assert state is not None
        return state["values"]

    async def results(self) -> dict[str, tuple[str, str]]:
        """`(status, text)` of every tool result of the thread, by call."""
        return tool_results(await self.values())

    async def do(self, *calls: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """The results of tool calls, each made in a step of its own."""
        model = ScriptedModel(script=[*(Reply(tool_calls=[dict(each)]) for each in calls), Reply("done")])
        await self.say(model)
        return await self.results()


@asynccontextmanager
async def agent(
    folder: Path,
    *,
    tools: Sequence[AgentTool] = (),
    team: Sequence[SubagentSpec] = (),
    unready: Sequence[UnreadySkill] = (),
    roster: Callable[[], Roster] | None = None,
    **services: Any,
) -> AsyncIterator[Agent]:
    pool = FilePool()
    made = Agent(folder, pool)
    made.roster = Roster(fingerprint="1", tools=tuple(tools), subagents=tuple(team), unready=tuple(unready))
    try:
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            given = RuntimeServices(
                graph_storage=MemoryGraphStorage(), roster=roster or (lambda: made.roster), **services
            )
            await runtime.prepare(given)
            made.runtime = runtime
            yield made
    finally:
        pool.close()
