"""Code that never ends, eats memory or recurses, in a real server: everybody else is answered, and a stop ends it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from scripting import delegate, steps, use
from servers import Server, running_server
from talking import Frame, ask, frames_of, is_root_end, run_of, text_of, texts
from watching import Client, Record, begun, caught_up, ending, next_message_works, watched

MIB = 2**20
SANDBOX = 64 * MIB
PINGS = 50
GONE_SECONDS = 5.0

BEGAN = "await tools.writeFile({filePath: '/began.md', content: 'x'});"
LOOP = f"{BEGAN} while (true) {{}}"
BUSY_HANDLER = f"{BEGAN} for (;;) {{ try {{ while (true) {{}} }} catch (error) {{}} }}"
MATCHING = f"{BEGAN} /^(a+)+$/.test('a'.repeat(64) + 'b')"
BOMB = f"{BEGAN} const eaten = []; while (true) eaten.push(new Array(100000).fill(1.5))"
TEXT_BOMB = f"{BEGAN} let text = 'x'; while (true) text += text"
DEEP = f"{BEGAN} const deeper = (n) => deeper(n + 1) + 1; deeper(0)"

CLERK = "---\nname: Clerk\ndescription: counts\ntools: [builtin:eval]\n---\nYou are the clerk.\n"


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[Server], Awaitable[None]]], None]:
    """A scene with a server that has a specialist with a sandbox of its own, and that has run code before."""

    def played(scene: Callable[[Server], Awaitable[None]]) -> None:
        skill = tmp_path / "data" / "skills" / "clerk"
        (tmp_path / "data").mkdir(mode=0o700)
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(CLERK)

        async def bounded(server: Server) -> None:
            async with asyncio.timeout(90):
                async with Client(server.http) as client:
                    await ask(
                        client, "warm", steps(use("eval", code="6 * 7"), delegate("clerk", use("eval", code="1")))
                    )
                await scene(server)

        with running_server(tmp_path) as server:
            asyncio.run(bounded(server))

    return played


def by_whom(who: str, code: str) -> str:
    """`code` is run by the assistant or by its specialist; then the assistant goes on."""
    call = use("eval", code=code) if who == "the assistant" else delegate("clerk", use("eval", code=code), "reported")
    return steps(call, "went on")


def wrote(frame: Frame) -> bool:
    """The code has begun: it has written its file."""
    return frame["method"] == "custom" and frame["params"]["data"].get("name") == "pizzabot.artifact"


async def pings(server: Server) -> None:
    """One after another, each answered within the client's patience."""
    async with httpx.AsyncClient(base_url=server.http, timeout=5, trust_env=False) as http:
        for _ in range(PINGS):
            assert (await http.get("/ping")).status_code == 200


async def others_are_answered(server: Server) -> None:
    """Pings, a conversation and another sandbox."""
    await pings(server)
    async with Client(server.http) as other:
        assert text_of(await ask(other, "other", "how are you")) == "how are you"
        assert text_of(await ask(other, "other", use("eval", code="20 + 22"))) == "42"


@asynccontextmanager
async def computing(server: Server, words: str) -> AsyncIterator[tuple[Client, Record, str]]:
    """A turn whose code has begun; the id of its run."""
    async with watched(server, "t") as (client, record):
        run_id = await begun(client, "t", words)
        await record.until(wrote)
        yield client, record, run_id


def processor_time(pid: int) -> dict[int, int]:
    """Ticks that each thread of the process has used, but the main one, which answers."""
    told = {}
    for task in tasks(pid):
        if int(task.name) == pid:
            continue
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        told[int(task.name)] = int(fields[11]) + int(fields[12])
    return told


def busiest(before: dict[int, int], after: dict[int, int]) -> int:
    """The thread that was there at both times and used the most in between."""
    return max(before.keys() & after.keys(), key=lambda thread: after[thread] - before[thread])


def tasks(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def resident(pid: int) -> int:
    """Bytes of the process in memory."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(told.stdout) * 1024


@pytest.mark.parametrize("who", ["the assistant", "a specialist"])
@pytest.mark.parametrize("code", [LOOP, BUSY_HANDLER, MATCHING], ids=["loop", "catching", "regular expression"])
def test_while_code_computes_without_end_others_are_answered_and_a_stop_ends_it(play, who, code):
    async def scene(server):
        async with computing(server, by_whom(who, code)) as (client, record, run_id):
            await others_are_answered(server)
            before = processor_time(server.pid)
            await pings(server)
            guest = busiest(before, processor_time(server.pid))
            assert not any(is_root_end(frame) and run_of(frame) == run_id for frame in record.frames)
            answer = await client.command("t", "run.stop", {"run_id": run_id})
            assert answer["type"] == "success", answer
            assert ending(await frames_of(client, "t", run_id)) == ("completed", "CANCELLED")
            await is_gone(server.pid, guest)
            await next_message_works(client, "t")
            await caught_up(client, record, server=server)

    play(scene)


async def is_gone(pid: int, thread: int) -> None:
    """The thread ends by itself once its guest was stopped; nothing of another process tells when."""
    deadline = time.monotonic() + GONE_SECONDS
    while any(int(task.name) == thread for task in tasks(pid)):
        assert time.monotonic() < deadline, f"thread {thread} still computes"
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("who", ["the assistant", "a specialist"])
@pytest.mark.parametrize(
    ("code", "cause"),
    [(BOMB, "memory"), (TEXT_BOMB, "too long"), (DEEP, "too deeply")],
    ids=["arrays", "one text", "recursion"],
)
def test_code_that_eats_memory_or_recurses_ends_with_an_error_and_the_turn_goes_on(play, who, code, cause):
    async def scene(server):
        before = resident(server.pid)
        async with computing(server, by_whom(who, code)) as (client, record, run_id):
            await others_are_answered(server)
            frames = await frames_of(client, "t", run_id)
            assert ending(frames) == ("completed", None)
            assert text_of(frames).endswith("went on")
            failed = [data for data in map(told_of_tools, frames) if data.get("output", {}).get("status") == "error"]
            assert len(failed) == 1, failed
            assert cause in failed[0]["output"]["content"].lower()
            assert resident(server.pid) - before <= 1.5 * SANDBOX
            await next_message_works(client, "t")
            await caught_up(client, record, server=server)

    play(scene)


def told_of_tools(frame: Frame) -> dict:
    return frame["params"]["data"] if frame["method"] == "tools" else {}


def test_of_ten_memory_bombs_nothing_stays(play):
    async def scene(server):
        async with Client(server.http) as client:
            await ask(client, "t", use("eval", code=BOMB))
            before = resident(server.pid)
            for _ in range(10):
                await ask(client, "t", use("eval", code=BOMB))
            assert resident(server.pid) - before <= SANDBOX / 2
            results = [text for kind, text in texts(await client.state("t")) if kind == "tool"]
            assert len(results) == 11
            assert all("memory" in text.lower() for text in results)

    play(scene)


def test_as_many_endless_evals_as_there_are_sandboxes_leave_the_server_answering_and_a_stop_frees_each(play):
    names = [f"t{number}" for number in range(8)]

    async def scene(server):
        async with Client(server.http) as client:
            runs = {name: await begun(client, name, use("eval", code=LOOP)) for name in names}
            for name in names:
                async for frame in client.frames(name, since=0):
                    if wrote(frame):
                        break
            await pings(server)
            assert text_of(await ask(client, "other", "how are you")) == "how are you"
            for name, run_id in runs.items():
                assert (await client.command(name, "run.stop", {"run_id": run_id}))["type"] == "success"
            for name, run_id in runs.items():
                assert ending(await frames_of(client, name, run_id)) == ("completed", "CANCELLED")
            assert text_of(await ask(client, "other", use("eval", code="20 + 22"))) == "42"

    play(scene)
