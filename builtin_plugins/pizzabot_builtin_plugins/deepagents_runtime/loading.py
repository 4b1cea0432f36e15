"""Bringing in LangGraph and DeepAgents without the event loop noticing: environment, stepwise imports, switching."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

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
    "pizzabot_builtin_plugins.deepagents_runtime.graph_building",
    "pizzabot_builtin_plugins.deepagents_runtime.normaliser",
    "pizzabot_builtin_plugins.deepagents_runtime.snapshots",
    "pizzabot_builtin_plugins.deepagents_runtime.streaming",
    "pizzabot_builtin_plugins.deepagents_runtime.thread_memory",
    "pizzabot_builtin_plugins.deepagents_runtime.warming",
)
"""What `load` imports, in order, from the bottom up so that each step is short."""

_switching = threading.Lock()
_inside = 0
_before = 0.0


def set_environment(*, tracing: bool) -> None:
    """What the libraries read when they are imported; call it before anything imports them."""
    # Reads of a long thread walk back to the last snapshot of every delta channel: 215 ms at 1,000 messages with the
    # library's 5,000 supersteps, 37 ms with 100 (measured; design/stack.md §8).
    os.environ.setdefault("LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT", "100")
    if not tracing:
        os.environ["LANGSMITH_TRACING"] = "false"
        os.environ["LANGCHAIN_TRACING_V2"] = "false"


def load() -> float:
    """Import everything of `STEPS` and return the seconds it took. Blocks: run it in a thread."""
    started = time.perf_counter()
    with quick_switching(), no_collections():
        for module in STEPS:
            importlib.import_module(module)
            time.sleep(BREATH_SECONDS)
    return time.perf_counter() - started


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
