"""`pizzabot serve` stops within its limits, whatever a tool does: a real process, its exit code and what it logs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any

import httpx
import pytest

from pizzabot.cli.loop import LEFT_SECONDS
from pizzabot.host.runs.engine import SHUTDOWN_SECONDS

WAIT = 30.0
SPARE_SECONDS = 4.0
"""For what is done beside waiting, on a machine that has other things to do."""

TOOLS = '''
import asyncio, threading
from pizzabot_hookspecs import Offer, hookimpl
from pizzabot_hookspecs.agent_tools import AgentTool

class Tools:
    async def tools(self):
        return await asyncio.to_thread(made)

def made():
    from langchain_core.tools import tool

    @tool
    async def deaf() -> str:
        """Swallows its cancellation, again and again."""
        print("begun", flush=True)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    @tool
    async def stuck() -> str:
        """Blocks a thread for good."""
        return await asyncio.to_thread(in_vain)

    @tool
    def blocking() -> str:
        """Blocks the thread that it is given."""
        return in_vain()

    def in_vain() -> str:
        print("begun", flush=True)
        return str(threading.Event().wait())

    return [AgentTool(tool=deaf), AgentTool(tool=stuck), AgentTool(tool=blocking)]

@hookimpl
def pizzabot_agent_tools():
    return [Offer(name="stubborn", summary="tools that do not end", create=lambda context, settings: Tools())]
'''


class Serving:
    """`pizzabot serve` on a data root that stays when it is started again."""

    def __init__(self, pizzabot: Any, plugins: Path) -> None:
        self._command = pizzabot
        self._environment = pizzabot.environment(PYTHONPATH=str(plugins), PYTHONWARNINGS="default")
        self.data_root = pizzabot.home / "root"
        self.start()

    def start(self) -> None:
        words = ["serve", "--port", "0", "--model", "echo:echo", "--data-root", str(self.data_root)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pizzabot", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment, cwd=self._command.folder,
        )  # fmt: skip
        self.url = self.reads("listening on ").split()[-1]

    def reads(self, words: str, *, err: bool = False) -> str:
        stream = self.process.stderr if err else self.process.stdout
        assert stream is not None
        for line in stream:
            if words in line:
                return line
        raise AssertionError(f"it ended without saying {words!r}: {self.process.communicate()}")

    def say(self, text: str) -> None:
        params = {"input": {"messages": [{"role": "user", "content": text}]}}
        answer = httpx.post(f"{self.url}/threads/t/commands", json={"id": 1, "method": "run.start", "params": params})
        assert answer.json()["type"] == "success", answer.text

    def end_of_the_run(self) -> dict[str, Any]:
        wanted = {"channels": ["lifecycle"], "since": 0}
        with httpx.stream("POST", f"{self.url}/threads/t/stream/events", json=wanted, timeout=WAIT) as stream:
            for line in stream.iter_lines():
                if line.startswith("data: ") and (data := json.loads(line[6:])["params"]["data"])["event"] != "running":
                    return dict(data)
        raise AssertionError("the stream ended before the run did")

    def logged(self, event: str) -> list[dict[str, Any]]:
        lines = [line for path in sorted(self.data_root.glob("logs/*")) for line in path.read_text().splitlines()]
        return [record["context"] for line in lines if (record := json.loads(line)).get("event") == event]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serving(pizzabot: Any, plugin_folder: Callable[[str, str], Path]) -> Iterator[Serving]:
    started = Serving(pizzabot, plugin_folder("stubborn", TOOLS))
    try:
        yield started
    finally:
        started.close()


@pytest.mark.parametrize(("tool", "named"), [("deaf", "deaf"), ("stuck", "in_vain"), ("blocking", None)])
@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_tool_that_does_not_end_is_left_behind_named_and_asked_about_at_the_next_start(
    serving: Serving, number: int, tool: str, named: str | None
) -> None:
    serving.say(f"[[tool {tool} {{}}]] [[then]] never")
    serving.reads("begun")
    began = time.monotonic()
    serving.process.send_signal(number)
    _, err = serving.process.communicate(timeout=WAIT)
    assert time.monotonic() - began < SHUTDOWN_SECONDS + LEFT_SECONDS + SPARE_SECONDS
    assert serving.process.returncode == 0, err
    if named is not None:
        [told] = serving.logged("server.left_behind")
        assert any(f"{named} (stubborn.py:" in line for line in told["left"])
        assert f"{named} (stubborn.py:" in err.splitlines()[-1]
    serving.start()
    assert serving.end_of_the_run()["code"] == "NEEDS_ATTENTION"
    serving.process.send_signal(SIGTERM)
    _, err = serving.process.communicate(timeout=WAIT)
    assert (serving.process.returncode, err) == (0, "pizzabot: stopping\n")


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_second_signal_ends_it_at_once(serving: Serving, number: int) -> None:
    serving.say("[[tool deaf {}]] [[then]] never")
    serving.reads("begun")
    serving.process.send_signal(SIGTERM)
    serving.reads("stopping", err=True)
    serving.process.send_signal(number)
    assert serving.process.wait(WAIT) == 130


ENDING = """
import asyncio, sys, threading
from pizzabot.cli.loop import run_to_the_end
from pizzabot.cli.serve import _ended

async def main():
    begun = threading.Event()
    asyncio.create_task(asyncio.to_thread(lambda: (begun.set(), threading.Event().wait())))
    while not begun.is_set():
        await asyncio.sleep(0)
    raise OSError(28, "No space left on device")

def serving(left):
    run_to_the_end(main(), left=left.extend)

sys.exit(_ended(serving, debug=False))
"""


def test_a_server_that_fails_beside_a_blocked_thread_says_why_and_ends_too() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.returncode == 4
    assert done.stderr.startswith("pizzabot: there is no room on the disk")


IDLE = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
from pizzabot.cli.loop import run_to_the_end

async def main():
    await asyncio.to_thread(int)
    await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(), int)
    forgotten = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)

run_to_the_end(main(), left=print)
print("ended", flush=True)
"""


def test_threads_that_wait_for_work_and_tasks_that_obey_are_not_left_behind() -> None:
    command = [sys.executable, "-W", "error", "-c", IDLE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
