"""The built-in runtime keeps the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pizzabot.testing.runtime_contract import AgentRuntimeContract
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, RuntimeServices
from pizzabot_hookspecs.storage_backends import GraphStorage


class TestDeepAgentsRuntime(AgentRuntimeContract):
    @asynccontextmanager
    async def runtime(self, storage: GraphStorage) -> AsyncIterator[AgentRuntime]:
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            await runtime.prepare(RuntimeServices(graph_storage=storage))
            yield runtime
