"""Child processes leave nothing behind: real processes, real groups."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from pizzabot_hookspecs.support.processes import Tail, clean_environment, exited, start, terminate_group
from pizzabot_hookspecs.support.processes import running as running_child

FAMILY = """
import os, signal, subprocess, sys
if {stubborn}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", {grandchild!r}], stdout=subprocess.PIPE)
grandchild.stdout.readline()
print(os.getpid(), grandchild.pid, flush=True)
{then}
"""
WAITS = "import signal; print('up', flush=True); signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"


def family(*, stubborn: bool = False, then: str = "signal.pause()") -> list[str]:
    grandchild = DEAF if stubborn else WAITS
    return [sys.executable, "-c", FAMILY.format(stubborn=stubborn, grandchild=grandchild, then=then)]


async def pids(process: asyncio.subprocess.Process) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in (await process.stdout.readline()).split()]


def running(pid: int) -> bool:
    """A zombie that its new parent has not collected yet does not run."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.parent.parent.joinpath("self").exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_child_and_its_grandchild_are_gone_after_terminate_group() -> None:
    async def scene() -> None:
        process = await start(family())
        members = await pids(process)
        began = time.monotonic()
        assert await terminate_group(process) == -signal.SIGTERM
        assert time.monotonic() - began < 1.5, "who obeys TERM is not waited for"
        assert not any(running(pid) for pid in members)

    asyncio.run(scene())


def test_a_family_that_ignores_term_is_killed_after_the_patience_and_gone_within_three_seconds() -> None:
    async def scene() -> None:
        process = await start(family(stubborn=True))
        members = await pids(process)
        began = time.monotonic()
        assert await terminate_group(process) == -signal.SIGKILL
        assert 2.0 <= time.monotonic() - began < 3.0
        assert not any(running(pid) for pid in members)

    asyncio.run(scene())


def test_a_grandchild_that_outlived_its_parent_is_ended_too() -> None:
    async def scene() -> None:
        process = await start(family(then="sys.exit(3)"))
        _, grandchild = await pids(process)
        assert await exited(process) == 3
        assert running(grandchild)
        assert await terminate_group(process) == 3
        assert not running(grandchild)

    asyncio.run(scene())


def test_terminating_twice_is_harmless() -> None:
    async def scene() -> None:
        process = await start(family())
        await pids(process)
        assert await terminate_group(process) == await terminate_group(process)

    asyncio.run(scene())


def test_a_cancelled_terminate_kills_at_once() -> None:
    async def scene() -> None:
        process = await start(family(stubborn=True))
        members = await pids(process)
        ending = asyncio.create_task(terminate_group(process, patience=60))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert await exited(process) == -signal.SIGKILL
        await terminate_group(process)
        assert not any(running(pid) for pid in members)

    asyncio.run(scene())


@pytest.mark.parametrize("stubborn", [False, True])
def test_leaving_a_block_by_cancellation_ends_the_child_and_its_grandchild_within_three_seconds(
    *, stubborn: bool
) -> None:
    async def scene() -> None:
        members: list[int] = []
        up = asyncio.Event()

        async def tool() -> None:
            async with running_child(family(stubborn=stubborn)) as process:
                members.extend(await pids(process))
                up.set()
                await exited(process)

        working = asyncio.create_task(tool())
        await up.wait()
        began = time.monotonic()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert time.monotonic() - began < 3.0
        assert len(members) == 2
        assert not any(running(pid) for pid in members)

    asyncio.run(scene())


def test_leaving_a_block_ends_what_the_child_left_behind_and_keeps_its_exit_code() -> None:
    async def scene() -> None:
        async with running_child(family(then="sys.exit(3)")) as process:
            _, grandchild = await pids(process)
            assert await exited(process) == 3
        assert process.returncode == 3
        assert not running(grandchild)

    asyncio.run(scene())


def test_a_child_gets_the_allowed_environment_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")
    environ = clean_environment({"EXTRA": "1"})
    assert environ["PATH"] == os.environ["PATH"]
    assert environ["LC_CTYPE"] == "C.UTF-8"
    assert environ["EXTRA"] == "1"
    assert "SOME_API_KEY" not in environ
    assert clean_environment(inherit=["SOME_API_KEY"])["SOME_API_KEY"] == "hunter2"

    async def scene() -> bytes:
        process = await start([sys.executable, "-c", "import os; print(sorted(os.environ))"], stdin=False)
        return (await process.communicate())[0]

    assert b"SOME_API_KEY" not in asyncio.run(scene())


def test_a_child_leads_its_own_session() -> None:
    async def scene() -> None:
        process = await start([sys.executable, "-c", "import os; print(os.getpid(), os.getsid(0), os.getpgid(0))"])
        assert set(await pids(process)) == {process.pid}
        await terminate_group(process)

    asyncio.run(scene())


PARENT = """
import asyncio, json, sys
from pizzabot_hookspecs.support.processes import running
async def main():
    async with running(json.loads(sys.argv[1]), stdin=False) as process:
        print((await process.stdout.readline()).decode().strip(), process.pid, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
BLIND = "import os; vars(os).pop('pidfd_open', None); from pizzabot_hookspecs.support import guard; "


async def end_of(pid: int) -> None:
    """Until the process is gone or a zombie: its descriptor becomes readable then."""
    handle = os.pidfd_open(pid)
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, gone.set)
    try:
        await asyncio.wait_for(gone.wait(), 3)
    finally:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors of processes")
def test_a_family_that_ignores_term_dies_with_the_killed_process_that_ran_it() -> None:
    async def scene() -> None:
        parent = await start([sys.executable, "-c", PARENT, json.dumps(family(stubborn=True))])
        members = await pids(parent)
        assert len(members) == 3, "the command, what it started, and the guard"
        parent.kill()
        await asyncio.gather(*map(end_of, members))
        await terminate_group(parent)

    asyncio.run(scene())


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors of processes")
def test_without_descriptors_of_processes_a_guard_looks_for_its_parent_itself() -> None:
    parent = (
        "import json, os, subprocess, sys\n"
        "guarding = [sys.executable, '-c', sys.argv[1], str(os.getpid()), *json.loads(sys.argv[2])]\n"
        "subprocess.Popen(guarding, start_new_session=True).wait()\n"
    )
    blind = BLIND + "import sys; guard.guard(int(sys.argv[1]), sys.argv[2:])"

    async def scene() -> None:
        process = await start([sys.executable, "-c", parent, blind, json.dumps(family(stubborn=True))])
        members = await pids(process)
        process.kill()
        await asyncio.gather(*map(end_of, members))
        await terminate_group(process)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("kill -KILL $$", -signal.SIGKILL), ("kill -USR1 $$", -signal.SIGUSR1)]
)
def test_a_guard_ends_as_its_command_does(command: str, code: int) -> None:
    async def scene() -> int | None:
        async with running_child(["sh", "-c", command], stdin=False) as process:
            assert await process.communicate() == (b"", b"")
        return process.returncode

    assert asyncio.run(scene()) == code


@pytest.mark.parametrize(("method", "code"), [("terminate", -signal.SIGTERM), ("kill", -signal.SIGKILL)])
def test_what_is_sent_to_a_guarded_process_reaches_its_command(method: str, code: int) -> None:
    async def scene() -> None:
        async with running_child(family()) as process:
            members = await pids(process)
            getattr(process, method)()
            assert await exited(process) == code
        assert not any(running(pid) for pid in members)

    asyncio.run(scene())


def test_a_guarded_command_reads_writes_and_breaks_pipes_as_any_other() -> None:
    async def scene() -> tuple[bytes, bytes]:
        async with running_child(["sh", "-c", "cat; yes | head -n 1"]) as process:
            return await process.communicate(b"what it is told\n")

    assert asyncio.run(scene()) == (b"what it is told\ny\n", b"")


def test_a_guarded_command_that_does_not_exist_says_so() -> None:
    async def scene() -> tuple[int | None, bytes]:
        process = await start(["/nowhere/no-such-program"], guarded=True, stdin=False)
        _, stderr = await process.communicate()
        return process.returncode, stderr

    code, stderr = asyncio.run(scene())
    assert code == 127
    assert stderr == b"/nowhere/no-such-program: No such file or directory\n"


def test_a_tail_keeps_the_last_bytes_and_hands_on_every_line() -> None:
    lines: list[str] = []
    tail = Tail(limit=10, sink=lines.append)

    async def scene() -> None:
        stream = asyncio.StreamReader()
        stream.feed_data(b"first\nsecond line that is long\nlast")
        stream.feed_eof()
        await tail.drain(stream)

    asyncio.run(scene())
    assert tail.text == " long\nlast"
    assert lines == ["first", "at is long", "last"]


def test_a_tail_of_a_flood_stays_within_its_limit() -> None:
    tail = Tail(limit=1000, sink=lambda _: None)
    for _ in range(10_000):
        tail.feed(b"x" * 100)
    assert tail.text == "x" * 1000
    assert sum(len(chunk) for chunk in tail._chunks) <= 1100
    assert len(tail._line) <= 1000
