"""MCP servers: 20 of them, 5 dead. When healthy tools can be used, what a call costs, how the loop fares meanwhile.

    python bench/mcp_servers.py [--rounds N]

The servers are processes of the tests. A healthy one writes down when it answered `tools/list`; a call's own time is
that of a server that does nothing, so all of it is over the server's time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from peer.figures import end, figure, machine, spread

from pizzabot.testing import host

SERVERS = Path(__file__).parents[1] / "tests" / "mcp_servers"
HEALTHY = 15
DEAD = ("silent", "silent-tools", "crash-start", "nonsense", "many")
CALLS = 200
BEAT_SECONDS = 0.002


def entries(folder: Path) -> dict[str, object]:
    """The dead first: they must not stand in anybody's way."""
    program = str(SERVERS / "odd.py")
    dead = {f"a-{way}": {"command": sys.executable, "args": [program, way]} for way in DEAD}
    healthy = {
        f"well-{number}": {
            "command": sys.executable,
            "args": [program, "told", str(folder / f"well-{number}.pid"), str(folder / f"well-{number}.listed")],
        }
        for number in range(HEALTHY)
    }
    return {**dead, **healthy}


async def beat(gaps: list[float]) -> None:
    last = time.perf_counter()
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        now = time.perf_counter()
        gaps.append(now - last - BEAT_SECONDS)
        last = now


async def one_round(folder: Path) -> tuple[list[float], list[float], list[float], float]:
    """Seconds from a server's answer to usable tools; of calls; the loop's gaps; until all healthy ones were there."""
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": entries(folder)}))
    usable: dict[str, float] = {}
    everybody = asyncio.Event()
    began = time.time()
    async with host(data_root=folder, settings={"storage": {"use": "memory"}}) as opened:
        board = opened.mcp_board

        def look() -> None:
            for server_id, state in board.states().items():
                if state.tools and server_id not in usable:
                    usable[server_id] = time.time()
            if len(usable) == HEALTHY:
                everybody.set()

        board.on_change(look)
        await opened.runtime()  # the graph stack blocks the loop by itself: measured by runtime_loading.py
        gaps: list[float] = []
        heart = asyncio.create_task(beat(gaps))
        async with asyncio.timeout(60):
            await everybody.wait()
        whole = time.time() - began
        over = [at - float((folder / f"{name}.listed").read_text()) for name, at in usable.items()]
        tool = board.states()["well-0"].tools["echo"].tool
        calls = []
        for number in range(CALLS):
            asked = {"type": "tool_call", "name": "echo", "args": {"text": "x"}, "id": str(number)}
            start = time.perf_counter()
            await tool.ainvoke(asked)
            calls.append(time.perf_counter() - start)
        heart.cancel()
    return over, calls, gaps, whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    print(machine())
    over: list[float] = []
    calls: list[float] = []
    gaps: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="pizzabot-") as folder:
            told, called, waited, whole = asyncio.run(one_round(Path(folder)))
        over, calls, gaps = over + told, calls + called, gaps + waited
        figure(f"{HEALTHY} healthy of {HEALTHY + len(DEAD)} servers connected after, s", whole)
    figure("healthy tools usable after their server answered, longest, s", max(over), at_most=1, more=spread(over))
    calls.sort()
    figure("a call over the server's own time, p50, ms", calls[len(calls) // 2] * 1e3, at_most=15, more=spread(calls))
    figure("longest gap of the loop, ms", max(gaps) * 1e3, more=spread(gaps))
    print(end())
    return 0


if __name__ == "__main__":
    sys.exit(main())
