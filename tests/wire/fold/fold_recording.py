"""Logs of the real engine with the real graph runtime, as vectors need them: `record(name)` plays one of `SCENES`."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "host"))
sys.path.insert(0, str(Path(__file__).parent))

from engine_rig import EVERYTHING, collect_until, log_of, open_storage, rig, start
from fold_frames import frame_of, without_bulk

from pizzabot.testing.runtime_contract.kit import call, decided, services_of
from pizzabot.testing.runtime_contract.workbench import Workbench
from pizzabot.testing.scripted_model import Gate, Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import SubagentSpec

THREAD = "t"
BASE = 1_796_000_000_000
_IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=run_)[0-9a-f]{32}|\b[0-9a-f]{32}\b"
)


@dataclass
class Stage:
    """A thread on a real engine."""

    folder: Path
    parts: Any = None
    bench: Any = None

    async def say(self, text: str, message_id: str, *, wait: bool = True, **params: Any) -> str:
        answer = await start(self.parts, THREAD, text, message_id=message_id, **params)
        assert "result" in answer, answer
        run_id = str(answer["result"]["run_id"])
        if wait:
            await self.parts.engine.when_idle()
        return run_id

    async def respond(self, question: Any, response: Any) -> None:
        params = {"interrupt_id": question.interrupt_id, "response": response}
        body = {"id": 2, "method": "input.respond", "params": params}
        await self.parts.runs.command(THREAD, body, caller=LOCAL)
        await self.parts.engine.when_idle()

    async def waiting(self) -> Sequence[Any]:
        found: Sequence[Any] = await self.parts.storage.open_interrupts(THREAD, caller=LOCAL)
        return found

    async def stop(self, run_id: str) -> None:
        await self.parts.runs.stop(THREAD, run_id, caller=LOCAL)

    async def seen(self, text: bytes) -> int:
        """Wait until `text` is in the log; the seq of its event."""
        stream = await self.parts.runs.observe(THREAD, EVERYTHING, since=0, caller=LOCAL)
        events = await collect_until(stream, lambda event: text in event.data)
        return int(events[-1].seq)


@asynccontextmanager
async def _staged(folder: Path, script: Any) -> AsyncIterator[Stage]:
    storage = open_storage(folder)
    model = ScriptedModel(script=script)
    async with DeepAgentsRuntime(RuntimeSettings()) as runtime, rig(folder, runtime, storage=storage) as parts:
        bench = Workbench()
        below = tuple(one for one in bench.tools if one.tool.name in ("look", "send"))
        clerk = SubagentSpec(name="clerk", description="works", prompt="You are the clerk.", tools=below)
        await runtime.prepare(services_of(storage, tools=bench.tools, subagents=(clerk,)))

        async def resolve(_model_id: str | None, /) -> Any:
            return chosen(model)

        parts.models.resolve = resolve
        yield Stage(folder, parts, bench)


Script = Any
Scene = Callable[[Stage], Awaitable[None]]


def _blocks(kind: str, index: int, *texts: str) -> list[Any]:
    return [[{"type": kind, kind: text, "index": index}] for text in texts]


async def _one_turn(stage: Stage) -> None:
    await stage.say("hello", "m1")


async def _two_turns(stage: Stage) -> None:
    await stage.say("first", "m1")
    await stage.say("second", "m2")


async def _decide_in_two_steps(stage: Stage) -> None:
    await stage.say("send it", "m1")
    while questions := await stage.waiting():
        await stage.respond(questions[0], decided("approve") if len(questions) > 1 else decided("reject", message="no"))


async def _answer(stage: Stage) -> None:
    await stage.say("ask me", "m1")
    (question,) = await stage.waiting()
    await stage.respond(question, {"size": "large"})


async def _edit(stage: Stage) -> None:
    await _two_turns(stage)
    await stage.say("second, better", "m3", branch_from="m2")
    await stage.say("and on", "m4")


async def _compact(stage: Stage) -> None:
    for number in range(1, 13):
        await stage.say(f"question {number}", f"m{number}")
    await stage.parts.transcripts.compact(THREAD, caller=LOCAL)
    await stage.say("and now", "m13")


async def _stop_in_a_tool(stage: Stage) -> None:
    run_id = await stage.say("hold it", "m1", wait=False)
    await stage.bench.held.wait()
    await stage.stop(run_id)
    await stage.parts.engine.when_idle()


_STOPPED, _REPLACED, _CRASHED = Gate(), Gate(), Gate()


async def _stop_in_text(stage: Stage) -> None:
    run_id = await stage.say("go", "m1", wait=False)
    await stage.seen(b'"three "')
    await stage.stop(run_id)
    await stage.parts.engine.when_idle()


async def _replace(stage: Stage) -> None:
    await stage.say("go", "m1", wait=False)
    await stage.seen(b'"two "')
    await stage.say("rather this", "m2")


async def _crash(stage: Stage) -> None:
    await stage.say("go", "m1", wait=False)
    await stage.seen(b'"two "')


async def _recover(stage: Stage) -> None:
    await stage.parts.engine.recover()
    await stage.parts.engine.when_idle()


_MANY = [
    call("look", "c1", what="x"),
    call("note", "c2", text="n"),
    call("nope", "c3", a=1),
    call("fail", "c4", reason="bad"),
]
_TASK = call("task", "c5", description="Do it\nwell.", subagent_type="clerk")

SCENES: dict[str, list[tuple[Script, Scene]]] = {
    "text": [([Reply("Tell me about pizza 🍕.")], _one_turn)],
    "reasoning": [
        (
            [Reply(pieces=[*_blocks("reasoning", 0, "a long ", "thought"), *_blocks("text", 1, "So ", "be it.")])],
            _one_turn,
        )
    ],
    "tool": [([Reply("", tool_calls=[call("look", "c1", what="x")]), Reply("seen")], _one_turn)],
    "parallel tools": [([Reply("Let me see.", tool_calls=_MANY), Reply("ok")], _one_turn)],
    "subagent": [
        (
            [
                Reply("now", tool_calls=[_TASK]),
                Reply("", tool_calls=[call("look", "c6", what="y")]),
                Reply("reported well"),
                Reply("done"),
            ],
            _one_turn,
        )
    ],
    "approvals in two steps": [
        (
            [
                Reply("both", tool_calls=[call("send", "c1", to="ada"), call("send", "c2", to="bob")]),
                Reply("one was sent"),
            ],
            _decide_in_two_steps,
        )
    ],
    "approval in a subagent": [
        (
            [
                Reply("now", tool_calls=[_TASK, call("send", "c8", to="bob")]),
                Reply("", tool_calls=[call("look", "c6", what="y"), call("send", "c7", to="ada")]),
                Reply("reported"),
                Reply("done"),
            ],
            _decide_in_two_steps,
        )
    ],
    "question": [([Reply("", tool_calls=[call("ask", "c1", question="Which size?")]), Reply("thanks")], _answer)],
    "stop in the middle of a text": [([Reply("one two three four five", gate=_STOPPED, gate_before=3)], _stop_in_text)],
    "stop in the middle of a tool": [
        ([Reply("Wait.", tool_calls=[call("hold", "c1", what="it"), call("look", "c2", what="x")])], _stop_in_a_tool)
    ],
    "replaced": [([Reply("one two three", gate=_REPLACED, gate_before=2), Reply("something else")], _replace)],
    "crash and recovery": [
        ([Reply("one two three four", gate=_CRASHED, gate_before=2)], _crash),
        ([Reply("one two three four")], _recover),
    ],
    "failure": [([Reply("half of", error=RuntimeError("rate limit: slow down"))], _one_turn)],
    "compaction": [
        ([*[Reply(f"answer {number}") for number in range(1, 13)], Reply("in short"), Reply("on")], _compact)
    ],
    "edit": [([Reply("answer one"), Reply("answer two"), Reply("better two"), Reply("on")], _edit)],
}


async def _play(name: str, folder: Path) -> list[dict[str, Any]]:
    log: list[Any] = []
    for script, scene in SCENES[name]:
        async with asyncio.timeout(60), _staged(folder, script) as stage:
            await scene(stage)
            log = await log_of(stage.parts, THREAD)
    return [frame_of(event) for event in without_bulk(log)]


def record(name: str) -> list[dict[str, Any]]:
    """The frames of a scene; ids and times are replaced by ones that are short and in order."""
    with tempfile.TemporaryDirectory() as folder:
        frames = asyncio.run(_play(name, Path(folder)))
    return _tidied(frames)


def _tidied(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"id{len(names) + 1}")

    tidied: list[dict[str, Any]] = json.loads(_IDS.sub(named, json.dumps(frames)))
    first = tidied[0]["params"]["timestamp"]

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: moved(member) for key, member in value.items()}
        if isinstance(value, list):
            return [moved(member) for member in value]
        return BASE + value - first if isinstance(value, int) and abs(value - first) < 3_600_000 else value

    result: list[dict[str, Any]] = moved(tidied)
    return result
