"""The built-in runtime keeps the contract, over storage in memory and over real SQLite files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pizzabot.testing.runtime_contract import AgentRuntimeContract
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, RuntimeServices
from pizzabot_hookspecs.storage_backends import GraphStorage

from .files import FileStorage


class TestDeepAgentsRuntime(AgentRuntimeContract):
    tools = True
    keeps_history = True
    keeps_branches = True
    compacts_context = True

    @asynccontextmanager
    async def runtime_with(self, services: RuntimeServices) -> AsyncIterator[AgentRuntime]:
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            await runtime.prepare(services)
            yield runtime

    @asynccontextmanager
    async def runtime(self, storage: GraphStorage) -> AsyncIterator[AgentRuntime]:
        async with self.runtime_with(RuntimeServices(graph_storage=storage)) as runtime:
            yield runtime


class TestDeepAgentsRuntimeOnSqlite(TestDeepAgentsRuntime):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.files: list[FileStorage] = []

    def new_storage(self) -> GraphStorage:
        self.files.append(FileStorage(self.folder / f"storage-{len(self.files)}"))
        return self.files[-1]

    @asynccontextmanager
    async def runtime_with(self, services: RuntimeServices) -> AsyncIterator[AgentRuntime]:
        """A restart is one: the file is closed and opened again."""
        async with super().runtime_with(services) as runtime:
            yield runtime
        for file in self.files:
            await file.close()

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        async def with_files() -> None:
            try:
                await asyncio.wait_for(scenario, self.patience)
            finally:
                for file in self.files:
                    await file.close()

        asyncio.run(with_files())
