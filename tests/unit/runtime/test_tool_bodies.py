"""Blocking tools run in threads that neither the loop's pool nor a shutdown knows of."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool

from pizzabot_builtin_plugins.deepagents_runtime import tool_bodies
from pizzabot_builtin_plugins.deepagents_runtime.tool_bodies import ToolExited, contained

word: ContextVar[str] = ContextVar("word")


@tool
def describe(what: str, config: RunnableConfig) -> str:
    """Describe something."""
    return f"{what} {word.get()} {config['configurable']['key']} {threading.current_thread().name}"


@tool
def stops() -> str:
    """An iterator that is at its end."""
    raise StopIteration


@tool
def leaves() -> str:
    """Exits."""
    sys.exit(4)


def test_a_blocking_tool_keeps_its_arguments_its_configuration_and_its_context() -> None:
    async def scenario() -> str:
        word.set("sky")
        return str(await contained(describe).ainvoke({"what": "blue"}, {"configurable": {"key": "k"}}))

    assert asyncio.run(scenario()) == "blue sky k tool"
    assert contained(describe).tool_call_schema.model_json_schema()["required"] == ["what"]  # type: ignore[union-attr]


@pytest.mark.parametrize(("own", "error"), [(stops, RuntimeError), (leaves, ToolExited)], ids=["stops", "leaves"])
def test_what_a_thread_cannot_hand_over_is_handed_over_as_an_error(own: BaseTool, error: type[Exception]) -> None:
    with pytest.raises(error):
        asyncio.run(contained(own).ainvoke({}))


def test_more_blocking_tools_than_the_limit_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_bodies, "_threads", threading.BoundedSemaphore(2))
    monkeypatch.setattr(tool_bodies, "_POLL_SECONDS", 0)
    at_once: list[int] = []
    inside: set[str] = set()
    both = threading.Barrier(2)

    @tool
    def work(name: str) -> str:
        """Work beside one other."""
        inside.add(name)
        both.wait(10)
        at_once.append(len(inside))
        both.wait(10)
        inside.discard(name)
        return name

    async def scenario() -> list[Any]:
        return await asyncio.gather(*(contained(work).ainvoke({"name": f"w{n}"}) for n in range(4)))

    assert asyncio.run(scenario()) == ["w0", "w1", "w2", "w3"]
    assert max(at_once) == 2


def test_a_tool_that_never_comes_back_does_not_hold_up_the_end_of_the_process() -> None:
    code = (
        "import asyncio, threading\n"
        "from langchain_core.tools import tool\n"
        "from pizzabot_builtin_plugins.deepagents_runtime.tool_bodies import contained\n"
        "up = threading.Event()\n"
        "@tool\n"
        "def stuck() -> str:\n"
        "    'Never comes back.'\n"
        "    up.set()\n"
        "    threading.Event().wait()\n"
        "async def main():\n"
        "    work = asyncio.create_task(contained(stuck).ainvoke({}))\n"
        "    await asyncio.to_thread(up.wait)\n"
        "    work.cancel()\n"
        "    await asyncio.wait([work])\n"
        "asyncio.run(main())\n"
        "print('over')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=30)
    assert done.stdout == "over\n", done.stderr
    assert done.returncode == 0
