"""Turns with tools beyond the contract: tools that misbehave, questions in odd places, children, changed models."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.types import Command, interrupt

from pizzabot.testing.runtime_contract import (
    Listener,
    MemoryGraphStorage,
    RecordedIntents,
    asked,
    call,
    conversation,
    decided,
    frames_of,
    model_of,
    request_for,
    requests,
    said,
    services_of,
    text_of,
    tool_results,
    turn,
)
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime import run as running
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_builtin_plugins.deepagents_runtime.tool_calls import BEGUN_RESULT
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest
from pizzabot_hookspecs.agent_runtimes import RUNTIME_TOOLS, SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool
from pizzabot_hookspecs.support import processes
from pizzabot_hookspecs.wire import ThreadState


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


@asynccontextmanager
async def prepared(
    *tools: BaseTool, gated: Sequence[BaseTool] = (), team: Sequence[SubagentSpec] = (), logger: Any = None
) -> AsyncIterator[DeepAgentsRuntime]:
    handed = [AgentTool(tool=own) for own in tools] + [AgentTool(tool=own, approval=DECISIONS) for own in gated]
    services = services_of(MemoryGraphStorage(), tools=handed, subagents=team)
    async with DeepAgentsRuntime(RuntimeSettings(), logger=logger, redact=without_secrets) as runtime:
        await runtime.prepare(services)
        yield runtime


def without_secrets(text: str) -> str:
    return text.replace("hunter2", "***")


async def state_of(runtime: DeepAgentsRuntime) -> ThreadState:
    state = await runtime.state("thread-1", caller=LOCAL)
    assert state is not None
    return state


# -- tools that misbehave ---------------------------------------------------------------------------------------------


@tool
async def gives_up() -> str:
    """Cancels itself."""
    raise asyncio.CancelledError


@tool
def exits() -> str:
    """Calls sys.exit, as a command-line parser does."""
    sys.exit(2)


@tool
async def exits_on_the_loop() -> str:
    """Calls sys.exit where the server itself runs."""
    sys.exit(3)


@tool
async def chained() -> str:
    """Wraps what went wrong."""
    try:
        raise ConnectionError("429 too many requests")
    except ConnectionError as error:
        raise RuntimeError("the search failed") from error


@pytest.mark.parametrize(
    ("bad", "told"),
    [(gives_up, "CancelledError"), (exits, "2"), (exits_on_the_loop, "3"), (chained, "429 too many requests")],
    ids=["cancels itself", "exits", "exits on the loop", "wraps its error"],
)
def test_a_tool_that_ends_itself_or_the_server_gets_a_result_and_the_turn_goes_on(bad: BaseTool, told: str) -> None:
    async def scenario() -> None:
        intents = RecordedIntents()
        _, choice = model_of(Reply(tool_calls=[call(bad.name, "c1")]), Reply("On we go"))
        async with prepared(bad) as runtime:
            frames = await frames_of(runtime.start(turn(choice, said("go"), intents=intents)))
            status, text = tool_results((await state_of(runtime))["values"])["c1"]
        assert text_of(frames) == "On we go"
        assert status == "error"
        assert told in text
        assert [f.data["event"] for f in frames if f.method == "tools"] == ["tool-started", "tool-error"]
        assert not intents.open_calls

    run(scenario())


def test_a_secret_in_a_tools_error_reaches_neither_the_model_nor_the_log() -> None:
    @tool
    async def fetch() -> str:
        """Fail with the headers."""
        raise ConnectionError("refused, with Authorization: hunter2")

    async def scenario() -> None:
        model, choice = model_of(Reply(tool_calls=[call("fetch", "c1")]), Reply("Sorry"))
        async with prepared(fetch) as runtime:
            frames = await frames_of(runtime.start(turn(choice, said("go"))))
        assert "Authorization: ***" in asked(model.calls[1].messages)[-1][1]
        assert "hunter2" not in str(model.calls[1].messages) + str(frames)

    run(scenario())


def test_a_stop_does_not_wait_for_ever_for_a_tool_that_ignores_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "TOOLS_SECONDS", 0.05)

    async def scenario() -> None:
        up, release, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @tool
        async def stubborn() -> str:
            """Goes on when it is cancelled."""
            up.set()
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            gone.set()
            return "finished all the same"

        intents = RecordedIntents()
        model, choice = model_of(Reply(tool_calls=[call("stubborn", "c1")]), Reply("Yes?"))
        async with prepared(stubborn) as runtime:
            started = runtime.start(turn(choice, said("go"), intents=intents))
            listener = Listener(started)
            await up.wait()
            await started.stop()
            assert not gone.is_set()
            results = tool_results((await state_of(runtime))["values"])
            assert results["c1"] == ("error", BEGUN_RESULT)
            await frames_of(runtime.start(turn(choice, said("next", "u2"), run_id="run-2", intents=intents)))
            release.set()
            await gone.wait()
            await listener.task
            assert tool_results((await state_of(runtime))["values"]) == results
        assert "finished" not in str(asked(model.calls[1].messages))

    run(scenario())


def test_a_tool_that_updates_the_state_by_a_command_is_closed_like_any_other() -> None:
    @tool
    async def remember(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Remember."""
        return Command(update={"messages": [ToolMessage("remembered", tool_call_id=call_id)]})

    async def scenario() -> None:
        intents = RecordedIntents()
        _, choice = model_of(Reply(tool_calls=[call("remember", "c1")]), Reply("Good"))
        async with prepared(remember) as runtime:
            await frames_of(runtime.start(turn(choice, said("go"), intents=intents)))
            assert tool_results((await state_of(runtime))["values"]) == {"c1": ("success", "remembered")}
        assert intents.journal == ["open c1", "close c1"]

    run(scenario())


# -- questions --------------------------------------------------------------------------------------------------------


@tool
async def survey(topic: str) -> str:
    """Ask twice."""
    first = interrupt(f"{topic}: how many?")
    second = interrupt({"question": f"{topic}: which?"})
    return f"{first} {second}"


@pytest.mark.parametrize("gated", [False, True])
def test_a_tool_may_ask_several_times_after_its_approval_too(*, gated: bool) -> None:
    async def scenario() -> None:
        intents = RecordedIntents()
        _, choice = model_of(Reply(tool_calls=[call("survey", "c1", topic="pizza")]), Reply("Noted"))
        answers: list[Any] = [*([decided("approve")] if gated else []), 0, ["ham", None]]
        asked_for: list[str] = []
        async with prepared(*([] if gated else [survey]), gated=[survey] if gated else []) as runtime:
            frames = await frames_of(runtime.start(turn(choice, said("go"), intents=intents)))
            for number, answer in enumerate(answers):
                ((interrupt_id, data),) = requests(frames).items()
                asked_for.append(data["payload"].get("question", "?"))
                assert not intents.open_calls
                given = {interrupt_id: answer}
                frames = await frames_of(
                    runtime.start(turn(choice, run_id=f"run-{number + 2}", answers=given, intents=intents))
                )
            results = tool_results((await state_of(runtime))["values"])
        assert asked_for[-2:] == ["pizza: how many?", "pizza: which?"]
        assert len(asked_for) == len(set(asked_for)) == len(answers)
        assert results == {"c1": ("success", "0 ['ham', None]")}
        assert text_of(frames) == "Noted"

    run(scenario())


@tool
async def send(to: str, copies: int = 1) -> str:
    """Send a letter."""
    return f"sent {copies} to {to}"


def test_nobody_is_asked_about_a_call_whose_arguments_do_not_fit() -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply(tool_calls=[call("send", "c1", to="ada", copies="many")]), Reply("Sorry"))
        async with prepared(gated=[send]) as runtime:
            frames = await frames_of(runtime.start(turn(choice, said("go"))))
            status, text = tool_results((await state_of(runtime))["values"])["c1"]
        assert not requests(frames)
        assert status == "error"
        assert "copies" in text

    run(scenario())


def test_answers_come_without_messages() -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply(tool_calls=[call("send", "c1", to="ada")]))
        async with prepared(gated=[send]) as runtime:
            frames = await frames_of(runtime.start(turn(choice, said("go"))))
            both = turn(choice, said("and", "u2"), answers={request_for(frames, "c1"): decided("approve")})
            with pytest.raises(InvalidRequest) as caught:
                await frames_of(runtime.start(both))
            assert caught.value.code == "answers_with_messages"
            assert len((await state_of(runtime))["interrupts"]) == 1

    run(scenario())


def test_a_waiting_turn_that_is_recovered_without_answers_asks_again_under_the_same_id() -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply(tool_calls=[call("send", "c1", to="ada")]))
        async with prepared(gated=[send]) as runtime:
            before = requests(await frames_of(runtime.start(turn(choice, said("go")))))
            after = requests(await frames_of(runtime.start(turn(choice, said("go"), recover=True))))
            assert before == after

    run(scenario())


def test_the_state_of_a_thread_that_waits_shows_what_the_frame_showed() -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply(tool_calls=[call("send", "c1", to="ada")]))
        async with prepared(gated=[send]) as runtime:
            ((interrupt_id, data),) = requests(await frames_of(runtime.start(turn(choice, said("go"))))).items()
            state = await state_of(runtime)
            assert state["interrupts"] == [{"id": interrupt_id, "value": data["payload"]}]
            (task,) = state["tasks"]
            assert task["interrupts"] == state["interrupts"]
            assert state["next"] == [task["name"]]

    run(scenario())


def test_a_model_that_cannot_call_tools_finishes_the_calls_that_another_one_made_and_is_offered_none() -> None:
    async def scenario() -> None:
        _, able = model_of(Reply(tool_calls=[call("send", "c1", to="ada")]))
        plain = ScriptedModel(script=[Reply("It is sent")])
        unable = chosen(plain, supports_tools=False, model_id="scripted:small")
        async with prepared(gated=[send]) as runtime:
            frames = await frames_of(runtime.start(turn(able, said("go"))))
            answers = {request_for(frames, "c1"): decided("approve")}
            frames = await frames_of(runtime.start(turn(unable, run_id="run-2", answers=answers)))
            assert tool_results((await state_of(runtime))["values"]) == {"c1": ("success", "sent 1 to ada")}
        assert text_of(frames) == "It is sent"
        assert plain.calls[0].tools == ()

    run(scenario())


def test_a_fork_without_messages_whose_process_died_goes_on_from_its_own_first_checkpoint() -> None:
    async def scenario() -> None:
        model, choice = model_of(
            Reply(error=ConnectionError("gone")), Reply("One"), Reply(error=ConnectionError("gone")), Reply("Instead")
        )
        async with prepared() as runtime:
            with pytest.raises(ConnectionError):
                await frames_of(runtime.start(turn(choice, said("first"))))
            failed = (await state_of(runtime))["checkpoint"]
            assert failed is not None
            await frames_of(runtime.start(turn(choice, run_id="run-2")))
            fork: Any = {"checkpoint_id": failed["checkpoint_id"]}
            with pytest.raises(ConnectionError):
                await frames_of(runtime.start(turn(choice, run_id="run-3", config=fork)))
            begun = (await state_of(runtime))["checkpoint"]
            again = await frames_of(runtime.start(turn(choice, run_id="run-3", config=fork, recover=True)))
            state = await state_of(runtime)
            first, *later = [frame.data for frame in again if frame.method == "checkpoints"]
            assert begun is not None
            assert begun["checkpoint_id"] != failed["checkpoint_id"]
            assert first["id"] == begun["checkpoint_id"]
            assert "fork" not in {data["source"] for data in later}
            assert conversation(state["values"]) == [("human", "first"), ("ai", "Instead")]
        assert len(model.calls) == 4

    run(scenario())


# -- child processes --------------------------------------------------------------------------------------------------

FAMILY = (
    "import signal, subprocess, sys\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "inner = 'import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); signal.pause()'\n"
    "child = subprocess.Popen([sys.executable, '-c', inner], stdout=subprocess.PIPE)\n"
    "child.stdout.readline()\n"
    "print(child.pid, flush=True)\n"
    "signal.pause()\n"
)


def runs(pid: int) -> bool:
    """A zombie that nobody has collected yet does not run."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not Path("/proc/self").exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("subagent", [False, True])
def test_a_stop_ends_the_children_and_grandchildren_of_a_tool_within_three_seconds(*, subagent: bool) -> None:
    async def scenario() -> None:
        members: list[int] = []
        up = asyncio.Event()

        @tool
        async def shell() -> str:
            """Start a family that ignores TERM."""
            async with processes.running([sys.executable, "-c", FAMILY], stdin=False) as process:
                assert process.stdout is not None
                members.extend([process.pid, int(await process.stdout.readline())])
                up.set()
                return str(await processes.exited(process))

        intents = RecordedIntents()
        task = call("task", "t1", description="x", subagent_type="worker")
        shelled = Reply(tool_calls=[call("shell", "c1")])
        _, choice = model_of(*([Reply(tool_calls=[task])] if subagent else []), shelled)
        worker = SubagentSpec(name="worker", description="w", prompt="w", tools=(AgentTool(tool=shell),))
        async with prepared(*([] if subagent else [shell]), team=[worker] if subagent else []) as runtime:
            started = runtime.start(turn(choice, said("go"), intents=intents))
            listener = Listener(started)
            await up.wait()
            assert all(runs(pid) for pid in members)
            began = time.monotonic()
            await started.stop()
            assert time.monotonic() - began < 3.0
            assert not any(runs(pid) for pid in members)
            assert intents.journal == ["open c1", "close c1"]
            await listener.task
            assert set(tool_results((await state_of(runtime))["values"])) == {"t1" if subagent else "c1"}

    run(scenario())


# -- what is left out -------------------------------------------------------------------------------------------------


class Told:
    def __init__(self) -> None:
        self.warnings: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.warnings.append((event, facts))

    debug = info = error = exception = warning


def test_what_is_left_out_is_logged_with_its_reason() -> None:
    async def scenario() -> None:
        log = Told()
        broken = AgentTool(tool=send, approval=frozenset({"maybe"}))
        team = [
            SubagentSpec(name="broken", description="b", prompt="b", tools=(broken,)),
            SubagentSpec(name="fine", description="f", prompt="f"),
        ]
        async with prepared(send, send, team=team, logger=log) as runtime:
            model, choice = model_of(Reply("Hello"))
            await frames_of(runtime.start(turn(choice, said("hi"))))
        assert set(model.calls[0].tools) - RUNTIME_TOOLS == {"send"}
        assert "task" in model.calls[0].tools
        assert "broken" in model.calls[0].messages[0].text
        assert [(event, facts.get("subagent") or facts.get("tool")) for event, facts in log.warnings] == [
            ("runtime.subagent_unavailable", "broken"),
            ("runtime.tool_unavailable", "send"),
        ]
        assert "maybe" in log.warnings[0][1]["reason"]

    run(scenario())


def test_an_intent_that_cannot_be_closed_ends_the_turn_before_the_model_is_asked_again() -> None:
    class Lost(RecordedIntents):
        async def close(self, call_id: str, /) -> None:
            raise Conflict("lease_lost", "another server has this run")

    async def scenario() -> None:
        model, choice = model_of(Reply(tool_calls=[call("send", "c1", to="ada")]))
        async with prepared(send) as runtime:
            with pytest.raises(Conflict):
                await frames_of(runtime.start(turn(choice, said("go"), intents=Lost())))
            assert await runtime.settled_calls("thread-1", ["c1"], caller=LOCAL) == {"c1"}
        assert len(model.calls) == 1

    run(scenario())
