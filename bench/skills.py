"""What skills cost: 1,000 in the folder at the start, a change seen, and how long the loop stands still meanwhile.

`python bench/skills.py [--skills N]`. A ticker on the same loop notes the longest gap between two of its turns; its own
gap, with nothing to do, is printed beside it. What is loaded before is frozen, as the agent runtime does it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.tools import StructuredTool

from pizzabot.host.skills.enablement import Enablement
from pizzabot.host.skills.live import LiveSkills
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_builtin_plugins.user_skills.source import UserSkills
from pizzabot_hookspecs.mcp_clients import McpTool

CHANGES = 15
TICK = 0.0005
SERVERS, TOOLS = 10, 20


class Quiet:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_facts: None


class Servers:
    """Ten servers of twenty tools."""

    def __init__(self) -> None:
        self._states = {f"server{place}": self._server() for place in range(SERVERS)}

    def _server(self) -> ServerState:
        def echo(text: str) -> str:
            return text

        tools = {
            name: McpTool(
                name=name, description=name, tool=StructuredTool.from_function(echo, name=name, description=name)
            )
            for name in (f"tool{place}" for place in range(TOOLS))
        }
        return ServerState(status=ServerStatus.CONNECTED, tools=tools)

    def states(self) -> Mapping[str, ServerState]:
        return self._states

    def known(self) -> bool:
        return True

    def on_change(self, callback: Any, /) -> None:
        self.changed = callback

    def trusted(self, server_id: str, /) -> bool:
        return server_id.endswith("0")


def write(root: Path, count: int) -> None:
    for number in range(count):
        folder = root / f"skill{number}"
        (folder / "references").mkdir(parents=True)
        tools = f"tools:\n  - mcp:server{number % SERVERS}:tool*\n  - builtin:eval\n" if number % 2 else ""
        gates = f"interruptOn:\n  mcp:server{number % SERVERS}:tool1*: true\n" if number % 2 else ""
        head = (
            f"---\nname: skill{number}\ndescription: Use when: somebody asks for number {number}\n{tools}{gates}---\n"
        )
        (folder / "SKILL.md").write_text(head + "Do this, then that.\n" * 100)
        (folder / "references" / "more.md").write_text("More about it.\n" * 200)


@asynccontextmanager
async def gaps():
    """The gaps between turns of the loop, in milliseconds, while the block runs."""
    found: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(TICK)
            now = time.perf_counter()
            found.append((now - last - TICK) * 1000)
            last = now

    ticking = asyncio.create_task(tick())
    try:
        yield found
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)


def shown(found: list[float]) -> str:
    ordered = sorted(found)
    return f"longest {ordered[-1]:.1f} ms, 99th of a hundred {ordered[int(len(ordered) * 0.99)]:.1f} ms"


async def until(live: LiveSkills, changed: asyncio.Event, holds: Any) -> None:
    while not holds(live.roster()):
        await changed.wait()
        changed.clear()


async def measure(root: Path, count: int) -> None:
    async with gaps() as idle:
        await asyncio.sleep(1)
    print(f"loop with nothing to do: {shown(idle)}")
    async with MemoryStorage() as storage, UserSkills(root, Quiet()) as source:
        servers, changed = Servers(), asyncio.Event()
        live = LiveSkills(servers=servers, enablement=Enablement(storage), logger=Quiet())
        live.add("user", source)
        live.on_roster_change(changed.set)
        async with gaps() as found:
            began = time.perf_counter()
            live.start()
            await live.ready()
            took = time.perf_counter() - began
        ready = len(live.roster().subagents)
        print(f"catalogue of {count} skills at start: {took * 1000:.0f} ms, {ready} ready (to reach: 1000)")
        print(f"  loop meanwhile: {shown(found)} (to reach: 10)")
        await changes(live, changed, root, count)
        async with gaps() as found:
            for _ in range(5):
                servers.changed()
                await live.refresh()
        print(f"a server's change: loop {shown(found)}")
        began = time.perf_counter()
        for _ in range(100_000):
            live.roster()
        print(f"reading the roster: {(time.perf_counter() - began) * 10:.2f} µs")
        await live.close()


async def changes(live: LiveSkills, changed: asyncio.Event, root: Path, count: int) -> None:
    seen: list[float] = []
    async with gaps() as found:
        for number in range(CHANGES):
            text = f"---\ndescription: changed {number}\n---\nbody\n"
            path = root / f"skill{number * 7 % count}" / "SKILL.md"
            began = time.perf_counter()
            path.write_text(text)
            await until(
                live,
                changed,
                lambda roster, n=number: any(one.description == f"changed {n}" for one in roster.subagents),
            )
            seen.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(0.3)
    print(
        f"a change is in the roster after: median {statistics.median(seen):.0f} ms, longest {max(seen):.0f} ms"
        " (to reach: 500)"
    )
    print(f"  loop meanwhile: {shown(found)} (to reach: 10)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--skills", type=int, default=1000)
    count = parser.parse_args().skills
    with tempfile.TemporaryDirectory(prefix="pizzabot-skills-") as folder:
        root = Path(folder) / "skills"
        write(root, count)
        gc.freeze()
        asyncio.run(measure(root, count))


if __name__ == "__main__":
    main()
