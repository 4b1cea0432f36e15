"""A process that holds a turn with tools, says where it is, and waits there to be killed.

    python doomed.py FOLDER SCENE

Writes down in FOLDER what happened, each line synced before anything follows: `runs` (what tools did) and `intents`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from pizzabot.testing.runtime_contract import call, decided, frames_of, model_of, request_for, said, services_of, turn
from pizzabot.testing.scripted_model import Reply
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs.agent_runtimes import SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool
from pizzabot_hookspecs.wire import Namespace

sys.path.insert(0, str(Path(__file__).parent))
from files import FileStorage

TASK = call("task", "t1", description="work", subagent_type="worker")
CALLS = [call("note", "c1", text="a"), call("hold", "c2", what="it")]


def write_down(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []


async def here(place: str) -> None:
    """Say where the process is, and stay there."""
    print(place, flush=True)
    await asyncio.Event().wait()


class FileIntents:
    """An `IntentLog` that survives. `stops_at`: the call whose closing never happens."""

    def __init__(self, path: Path, *, stops_at: str | None = None) -> None:
        self.path, self.stops_at = path, stops_at
        self.closed = asyncio.Event()

    async def open(self, call_id: str, /, *, tool: str, namespace: Namespace) -> None:
        write_down(self.path, json.dumps(["open", call_id, tool, list(namespace)]))

    async def close(self, call_id: str, /) -> None:
        if call_id == self.stops_at:
            await here(f"closing {call_id}")
        write_down(self.path, json.dumps(["close", call_id]))
        self.closed.set()

    def still_open(self) -> set[str]:
        calls: set[str] = set()
        for line in lines(self.path):
            what, call_id, *_ = json.loads(line)
            (calls.add if what == "open" else calls.discard)(call_id)
        return calls


def tools(folder: Path, *, held: FileIntents | None) -> Sequence[AgentTool]:
    """Each writes down that it ran. `held`: once a sibling's intent is closed, `hold` and `send` never come back."""

    @tool
    async def note(text: str) -> str:
        """Write something down."""
        write_down(folder / "runs", f"note {text}")
        return f"noted {text}"

    @tool
    async def hold(what: str) -> str:
        """Hold something."""
        write_down(folder / "runs", f"hold {what}")
        if held is not None:
            await held.closed.wait()
            await here("holding")
        return f"held {what}"

    @tool
    async def send(to: str) -> str:
        """Send a letter."""
        write_down(folder / "runs", f"send {to}")
        if held is not None:
            await here("sending")
        return f"sent to {to}"

    return (AgentTool(tool=note), AgentTool(tool=hold), AgentTool(tool=send, approval=DECISIONS))


@asynccontextmanager
async def runtime_in(
    folder: Path, *, held: FileIntents | None, subagent: bool, storage: FileStorage | None = None
) -> AsyncIterator[DeepAgentsRuntime]:
    storage = storage or FileStorage(folder / "storage")
    own = tuple(tools(folder, held=held))
    worker = SubagentSpec(name="worker", description="works", prompt="You work.", tools=own)
    services = services_of(storage, tools=() if subagent else own, subagents=(worker,) if subagent else ())
    try:
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            await runtime.prepare(services)
            yield runtime
    finally:
        await storage.close()


class StorageThatStops(FileStorage):
    """Says so and waits when the result of `c1` is about to be stored."""

    async def checkpointer(self) -> Any:
        saver = await super().checkpointer()
        store = saver.aput_writes

        class Stopping(type(saver)):  # type: ignore[misc]
            async def aput_writes(self, config: Any, writes: Any, *more: Any) -> None:
                results = [m for _, value in writes if isinstance(value, list) for m in value]
                if any(isinstance(m, ToolMessage) and m.tool_call_id == "c1" for m in results):
                    await here("storing c1")
                await store(config, writes, *more)

        saver.__class__ = Stopping
        return saver


async def main(folder: Path, scene: str) -> None:
    subagent = scene.endswith("in a subagent")
    intents = FileIntents(folder / "intents", stops_at="c1" if scene.startswith("before the closing") else None)
    storage = StorageThatStops(folder / "storage") if scene.startswith("before the result is stored") else None
    calls = [call("send", "c1", to="ada")] if scene == "in an approved tool" else CALLS
    _, choice = model_of(*([Reply(tool_calls=[TASK])] if subagent else []), Reply(tool_calls=calls))
    async with runtime_in(folder, held=intents, subagent=subagent, storage=storage) as runtime:
        frames = await frames_of(runtime.start(turn(choice, said("go"), intents=intents)))
        asked = request_for(frames, "c1")
        write_down(folder / "asked", asked)
        answers = {asked: decided("approve")}
        await frames_of(runtime.start(turn(choice, run_id="run-2", answers=answers, intents=intents)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
