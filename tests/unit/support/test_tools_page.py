"""The tool on docs/extend/tools.md that runs a program, word for word: what it says, and what a stop leaves of it."""

from __future__ import annotations

import asyncio
import os
import re
import select
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "extend" / "tools.md"
STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if inner := os.fork():
    with open("up", "w") as told:
        told.write(f"{os.getpid()} {inner}")
signal.pause()
"""


@pytest.fixture
def made() -> dict[str, Any]:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [text] = [block for block in blocks if "running(" in block]
    module: dict[str, Any] = {"__name__": "page"}
    exec(compile(text, str(PAGE), "exec"), module)
    return module


def test_the_tool_of_the_page_tells_the_end_of_what_a_program_says(made: dict[str, Any], tmp_path: Path) -> None:
    made["BUILD"] = ["sh", "-c", "pwd; echo oh >&2; exit 3"]
    told = asyncio.run(made["build"].ainvoke({"folder": str(tmp_path)}))
    assert told.startswith("exit code 3\n")
    assert sorted(told.splitlines()[1:]) == sorted([str(tmp_path), "oh"])


def test_the_tool_of_the_page_says_that_a_program_does_not_exist(made: dict[str, Any], tmp_path: Path) -> None:
    made["BUILD"] = ["no-such-program"]
    told = asyncio.run(made["build"].ainvoke({"folder": str(tmp_path)}))
    assert told == "exit code 127\nno-such-program: No such file or directory\n"


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors of processes")
def test_a_stop_of_the_tool_of_the_page_leaves_nothing_of_its_program(made: dict[str, Any], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "up")
    made["BUILD"] = [sys.executable, "-c", STUBBORN]

    async def scene() -> None:
        working = asyncio.create_task(made["build"].ainvoke({"folder": str(tmp_path)}))
        pids = [int(word) for word in (await asyncio.to_thread((tmp_path / "up").read_text)).split()]
        handles = [os.pidfd_open(pid) for pid in pids]
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert set(select.select(handles, [], [], 0)[0]) == set(handles), "the descriptor of one that ended is readable"
        for handle in handles:
            os.close(handle)

    asyncio.run(scene())
