"""The sandbox of `eval`: first and later use, a bridged call, the loop meanwhile, the end after a stop, a memory bomb.

    python bench/sandbox.py [--quick]

A real agent with a scripted model, in this process; the first use is measured in processes of their own, without and
with the folder that keeps the compiled engine. Other times are of a whole turn, less what the same turn takes with an
`eval` that is refused at once.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit" / "runtime" / "interpreter"))

from peer.figures import end, figure, machine, spread

COMPUTATION = "let s = 0; for (let i = 0; i < 4e6; i++) s += i % 7; s"
CALLS = 200


async def turn(*codes: str, **given: Any) -> float:
    from sandboxed import agent

    asking = agent(*codes, **given)
    gc.collect()
    began = time.perf_counter()
    results = await asking.say()
    assert len(results) == len(codes)
    return time.perf_counter() - began


async def evals(rounds: int) -> None:
    own = statistics.median([await turn("\0") for _ in range(rounds)])
    new = [await turn("1 + 1") - own for _ in range(rounds)]
    figure("an eval in a new sandbox, ms", statistics.median(new) * 1e3, more=spread(new))
    two = statistics.median([await turn("\0", "\0") for _ in range(rounds)])
    both = [await turn("1 + 1", "2 + 2") - two for _ in range(rounds)]
    figure("a second eval in the same sandbox, ms", (statistics.median(both) - statistics.median(new)) * 1e3)
    code = f"for (let i = 0; i < {CALLS}; i++) await tools.ls({{path: '/'}})"
    calls = [(await turn(code) - own - statistics.median(new)) / CALLS for _ in range(max(rounds // 4, 3))]
    figure("a bridged call, ms", statistics.median(calls) * 1e3, more=spread(calls))


async def loop(rounds: int) -> None:
    """The same turns once before, so that what an agent does for the first time is not counted; and nothing at all."""
    from sandboxed import agent, heartbeat

    for count, at_most in ((0, None), (1, 50.0), (4, None)):
        longest = []
        for _ in range(rounds):
            computing = [agent(COMPUTATION) for _ in range(count)]
            await asyncio.gather(*(one.say(thread="before") for one in computing))
            gc.collect()
            async with heartbeat() as gaps:
                await asyncio.gather(asyncio.sleep(0.5), *(one.say() for one in computing))
            longest.append(gaps.longest)
        name = f"longest gap of the loop while {count or 'no'} sandbox{'es' if count > 1 else ''} computes, ms"
        figure(name, statistics.median(longest) * 1e3, at_most=at_most, more=spread(longest))


async def stops(rounds: int) -> None:
    from langchain_core.tools import tool
    from sandboxed import agent, join_sandbox_threads

    begun = asyncio.Event()

    @tool
    async def ls(path: str) -> str:  # noqa: ARG001 - the tool's own arguments
        """Says that the code is running."""
        begun.set()
        return "No files found"

    sorting = "const a = Array.from({length: 2e5}, (_, i) => (i * 7919) % 100003 + ''); "
    for name, code in (
        ("in a loop", "await tools.ls({path: '/'}); while (true) {}"),
        ("in a native sort", f"{sorting} await tools.ls({{path: '/'}}); while (true) a.slice().sort()"),
        ("in a regular expression", "await tools.ls({path: '/'}); /(a+)+$/.test('a'.repeat(60) + 'b')"),
    ):
        took = []
        for _ in range(rounds):
            begun.clear()
            going = asyncio.ensure_future(agent(code, replaced=[ls]).say())
            await begun.wait()
            await asyncio.sleep(0.1)
            began = time.perf_counter()
            going.cancel()
            await asyncio.wait([going])
            await asyncio.to_thread(join_sandbox_threads)
            took.append(time.perf_counter() - began)
        figure(f"gone after a stop {name}, ms", max(took) * 1e3, at_most=500, more=spread(took))


async def bombs() -> None:
    from sandboxed import join_sandbox_threads, resident
    from test_bounds import BOMBS

    from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import MEMORY_BYTES

    grown = {}
    for name, code in BOMBS.items():
        await turn("1")
        join_sandbox_threads()
        before = peak = resident()
        going = asyncio.ensure_future(turn(code))
        while not going.done():
            peak = max(peak, resident())
            await asyncio.sleep(0.0005)
        grown[name] = (peak - before) / MEMORY_BYTES
    worst = max(grown, key=lambda name: grown[name])
    figure(
        "resident growth of a memory bomb / limit",
        grown[worst],
        at_most=1.5,
        more=f"the worst of {len(grown)}: {worst}",
    )


async def one_first_use(folder: str) -> dict[str, float]:
    """In a process of its own: the first eval, whoever waits for it."""
    from sandboxed import agent, heartbeat

    await turn("\0")
    asking = agent("6 * 7")
    asking.interpreter._cache_folder = Path(folder)
    async with heartbeat() as gaps:
        began = time.perf_counter()
        (result,) = await asking.say()
        took = time.perf_counter() - began
    assert result.content == "42"
    return {"seconds": took, "gap": gaps.longest}


def first_uses(rounds: int) -> None:
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for took in (cold, warm):
                command = [sys.executable, __file__, "--first", folder]
                took.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    for name, took in (("first use ever", cold), ("first use with the engine on disk", warm)):
        seconds, gaps = [one["seconds"] for one in took], [one["gap"] for one in took]
        figure(f"{name}, whole turn, ms", statistics.median(seconds) * 1e3, more=spread(seconds))
        figure("longest gap of the loop in it, ms", max(gaps) * 1e3, at_most=50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first:
        print(json.dumps(asyncio.run(one_first_use(arguments.first))))
        return
    rounds = 5 if arguments.quick else 20
    print(machine())
    first_uses(3 if arguments.quick else 5)
    for part in (evals(rounds), loop(max(rounds // 2, 3)), stops(max(rounds // 2, 3)), bombs()):
        asyncio.run(part)
    print(end())


if __name__ == "__main__":
    main()
