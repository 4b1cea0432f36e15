"""A process that holds a run of an engine on a store, says so, and writes on when it is told to.

    python paused_engine.py FOLDER

Prints the run's id once its first word is stored, waits for a line, lets the run go on, and prints what came of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "host"))

from engine_rig import EVERYTHING, collect_until, rig, start

from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL


async def main(folder: Path) -> None:
    async with rig(folder, ScriptedRuntime(gates=["word:1", "word:3"])) as parts:
        run_id = (await start(parts, "t", "one two three four five"))["result"]["run_id"]
        await parts.runtime.reached("word:1")
        stream = await parts.runs.observe("t", EVERYTHING, since=0, caller=LOCAL)
        await collect_until(stream, lambda event: b"one" in event.data)
        print(run_id, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        parts.runtime.release("word:1")
        parts.runtime.release("word:3")
        await parts.engine.when_idle()
        finished = [run.run_id for run in parts.finished]
        late = await start(parts, "t2", "another thread")
        await parts.engine.when_idle()
        print(json.dumps({"finished": finished, "late": late["type"], "active": parts.engine.active}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
