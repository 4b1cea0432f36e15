"""`AgentRuntimeContract`: what every agent runtime must do, as tests to inherit.

    class TestMyRuntime(AgentRuntimeContract):
        @asynccontextmanager
        async def runtime(self, storage: GraphStorage) -> AsyncIterator[AgentRuntime]:
            runtime = MyRuntime()
            await runtime.prepare(RuntimeServices(graph_storage=storage))
            yield runtime

The suite talks to the runtime through `Turn.model.chat` alone (a `ScriptedModel`), so it holds for any runtime that
answers by asking that model, with a graph or without. It brings its own `GraphStorage`, in memory, and opens a second
runtime over the same storage where a restart is meant.

A runtime that runs the tools it is handed says `tools = True` and overrides `runtime_with(services)` too; it is then
also tested for tools, approvals, intents and stopping in a tool. One that is a `KeepsHistory` says
`keeps_history = True` and is tested for that; so do `keeps_branches` and `compacts_context` for a `KeepsBranches` and a
`CompactsContext`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pizzabot.testing.runtime_contract.kit import (
    CONCURRENT_TURNS,
    Listener,
    MemoryGraphStorage,
    ModelDown,
    RecordedIntents,
    asked,
    call,
    content_text,
    conversation,
    decided,
    events,
    frames_of,
    model_of,
    request_for,
    requests,
    said,
    said_text,
    services_of,
    text_of,
    tool_results,
    turn,
)

if TYPE_CHECKING:
    from pizzabot.testing.runtime_contract.suite import AgentRuntimeContract as AgentRuntimeContract

__all__ = [
    "CONCURRENT_TURNS",
    "AgentRuntimeContract",
    "Listener",
    "MemoryGraphStorage",
    "ModelDown",
    "RecordedIntents",
    "asked",
    "call",
    "content_text",
    "conversation",
    "decided",
    "events",
    "frames_of",
    "model_of",
    "request_for",
    "requests",
    "said",
    "said_text",
    "services_of",
    "text_of",
    "tool_results",
    "turn",
]


def __getattr__(name: str) -> Any:
    if name != "AgentRuntimeContract":  # its modules import LangChain, which the names above do without
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.suite").AgentRuntimeContract
