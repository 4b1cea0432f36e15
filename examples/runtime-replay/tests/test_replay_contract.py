"""The runtime keeps the contract of agent runtimes, whichever way it answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from making import runtime_in
from pizzabot_replay.settings import Mode, ReplaySettings

from pizzabot.testing import AgentRuntimeContract
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, RuntimeServices
from pizzabot_hookspecs.storage_backends import GraphStorage


class TestRecording(AgentRuntimeContract):
    mode: ClassVar[Mode] = Mode.RECORD

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def runtime(self, storage: GraphStorage) -> AsyncIterator[AgentRuntime]:
        async with runtime_in(self.folder / str(id(storage)), ReplaySettings(mode=self.mode)) as runtime:
            await runtime.prepare(RuntimeServices(graph_storage=storage))
            yield runtime


class TestAuto(TestRecording):
    mode = Mode.AUTO
