"""Bringing in LangGraph and DeepAgents without the event loop noticing: environment, stepwise imports, switching."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")

SWITCH_SECONDS = 0.001
"""How long a thread that computes may hold the interpreter while the loop waits; Python's own value is 5 ms."""

BREATH_SECONDS = 0.002
"""Pause between two imports: one import can hold the interpreter for 60 ms, and two in a row must not add up."""

STEPS = (
    "langchain_core.messages",
    "langchain_core.language_models",
    "langsmith",
    "langgraph.checkpoint.base",
    "langgraph.graph",
    "langgraph.stream.transformers",
    "langchain.agents",
    "langchain.agents.middleware",
    "deepagents.backends",
    "deepagents.middleware",
    "deepagents",
    "langchain.agents.middleware.human_in_the_loop",
    "pizzabot_builtin_plugins.deepagents_runtime.tool_calls",
    "pizzabot_builtin_plugins.deepagents_runtime.compaction",
    "pizzabot_builtin_plugins.deepagents_runtime.graph_building",
    "pizzabot_builtin_plugins.deepagents_runtime.normaliser",
    "pizzabot_builtin_plugins.deepagents_runtime.snapshots",
    "pizzabot_builtin_plugins.deepagents_runtime.streaming",
    "pizzabot_builtin_plugins.deepagents_runtime.thread_memory",
    "pizzabot_builtin_plugins.deepagents_runtime.checkpoint_copies",
    "pizzabot_builtin_plugins.deepagents_runtime.compacting",
    "pizzabot_builtin_plugins.deepagents_runtime.thread_reading",
    "pizzabot_builtin_plugins.deepagents_runtime.state_writing",
    "pizzabot_builtin_plugins.deepagents_runtime.warming",
)
"""What `load` imports, in order, from the bottom up so that each step is short."""

COLLECTED_AFTER = (50_000, 20, 100)
"""Objects, then younger collections, before a collection. A turn makes thousands; Python's 700 is met many times."""

TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
"""All that LangSmith looks at; any one with "true" may be the one that counts."""

_switching = threading.Lock()
_inside = 0
_before = 0.0


def set_environment(*, tracing: bool) -> None:
    """What the libraries read when they are imported; call it before anything imports them."""
    # Reads of a long thread walk back to the last snapshot of every delta channel: 215 ms at 1,000 messages with the
    # library's 5,000 supersteps, 37 ms with 100 (measured; design/stack.md §8).
    os.environ.setdefault("LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT", "100")
    if not tracing:
        os.environ.update(dict.fromkeys(TRACING, "false"))


def load() -> float:
    """Import everything of `STEPS` and return the seconds it took. Blocks: run it in a thread."""
    started = time.perf_counter()
    with quick_switching(), no_collections():
        for module in STEPS:
            importlib.import_module(module)
            time.sleep(BREATH_SECONDS)
    if os.environ.get(TRACING[0]) == "false":
        _trace_nothing_in_place()
    return time.perf_counter() - started


def _trace_nothing_in_place() -> None:
    """LangSmith goes to a thread before and after each call, also to find that nothing is traced: 12 times a run."""
    import langsmith

    async def in_place(_default: object, context: Context, work: Callable[..., T], /, *values: Any, **named: Any) -> T:
        if getattr(work, "__name__", "") != "_setup_run":  # before a call there is nothing new to read
            await asyncio.sleep(0)  # a thread let others go on: a model that never waits would run ahead of its reader
        return context.run(work, *values, **named)

    langsmith.set_runtime_overrides(aio_to_thread=in_place)


@contextmanager
def no_collections() -> Iterator[None]:
    """No garbage collection inside, and what was made inside is never walked by one afterwards.

    Full collections among the 120,000 objects of the graph stack held the interpreter for 70 to 390 ms each while it
    was imported (measured); what is imported stays anyway. The few cycles that are garbage by then stay with it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)
        if enabled:
            gc.enable()


@contextmanager
def quick_switching() -> Iterator[None]:
    """While inside, in any thread, the interpreter switches threads every `SWITCH_SECONDS`."""
    global _inside, _before
    with _switching:
        if _inside == 0:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_SECONDS)
        _inside += 1
    try:
        yield
    finally:
        with _switching:
            _inside -= 1
            if _inside == 0:
                sys.setswitchinterval(_before)
