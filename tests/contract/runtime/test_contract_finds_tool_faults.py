"""The tests of tools fail for each of these faulty variants of the built-in runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from pizzabot.testing.runtime_contract import AgentRuntimeContract, RecordedIntents
from pizzabot_builtin_plugins.deepagents_runtime.run import GraphRun
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import Caller, InvalidRequest
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, RuntimeServices, Turn
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool
from pizzabot_hookspecs.storage_backends import GraphStorage
from pizzabot_hookspecs.wire import Frame


class OverDeepAgents(AgentRuntimeContract):
    tools = True
    made: ClassVar[type[DeepAgentsRuntime]] = DeepAgentsRuntime

    @asynccontextmanager
    async def runtime_with(self, services: RuntimeServices) -> AsyncIterator[AgentRuntime]:
        async with self.made(RuntimeSettings()) as runtime:
            await runtime.prepare(services)
            yield runtime

    @asynccontextmanager
    async def runtime(self, storage: GraphStorage) -> AsyncIterator[AgentRuntime]:
        async with self.runtime_with(RuntimeServices(graph_storage=storage)) as runtime:
            yield runtime


def with_tools(change: Callable[[AgentTool], AgentTool]) -> type[DeepAgentsRuntime]:
    """A runtime that reads the rules of tools in its own way."""

    class Faulty(DeepAgentsRuntime):
        async def prepare(self, services: RuntimeServices, /) -> None:
            given = services.roster()
            team = [replace(one, tools=tuple(map(change, one.tools))) for one in given.subagents]
            changed = replace(given, tools=[*map(change, given.tools)], subagents=team)
            await super().prepare(replace(services, roster=lambda: changed))

    return Faulty


def with_turn(change: Callable[[Turn], Turn]) -> type[DeepAgentsRuntime]:
    """A runtime that reads turns in its own way."""

    class Faulty(DeepAgentsRuntime):
        def start(self, turn: Turn, /) -> GraphRun:
            return super().start(change(turn))

    return Faulty


def with_frames(change: Callable[[Frame], Frame | None]) -> type[DeepAgentsRuntime]:
    """A runtime that tells what happens in its own way."""

    class Telling(GraphRun):
        async def _frames(self) -> AsyncIterator[Frame]:
            async for frame in super()._frames():
                if (changed := change(frame)) is not None:
                    yield changed

    class Faulty(DeepAgentsRuntime):
        def start(self, turn: Turn, /) -> GraphRun:
            return Telling(turn, self._ready)

    return Faulty


class EagerIntents(RecordedIntents):
    """Closes at once what it opens."""

    def __init__(self, real: Any) -> None:
        super().__init__()
        self.real = real

    async def open(self, call_id: str, /, *, tool: str, namespace: tuple[str, ...]) -> None:
        await self.real.open(call_id, tool=tool, namespace=namespace)
        await self.real.close(call_id)


class NotingIntents(EagerIntents):
    """Goes on where an intent could not be stored."""

    async def open(self, call_id: str, /, *, tool: str, namespace: tuple[str, ...]) -> None:
        try:
            await self.real.open(call_id, tool=tool, namespace=namespace)
        except Exception:
            self.open_calls[call_id] = (tool, namespace)

    async def close(self, call_id: str, /) -> None:
        await self.real.close(call_id)


class ClosesNothing(NotingIntents):
    async def close(self, call_id: str, /) -> None:
        return None


class KnowsNothing(DeepAgentsRuntime):
    async def settled_calls(self, thread_id: str, call_ids: Collection[str], /, *, caller: Caller) -> frozenset[str]:
        return frozenset()


class BelievesEverything(DeepAgentsRuntime):
    async def settled_calls(self, thread_id: str, call_ids: Collection[str], /, *, caller: Caller) -> frozenset[str]:
        return frozenset(call_ids)


class StopsWithoutWaiting(DeepAgentsRuntime):
    """Says that it has stopped while its tools are still at work."""

    def start(self, turn: Turn, /) -> GraphRun:
        run = super().start(turn)
        stop = run.stop

        async def at_once() -> None:
            self.stopping = asyncio.ensure_future(stop())

        run.stop = at_once  # type: ignore[method-assign]
        return run


def to_all_alike(turn: Turn) -> Turn:
    """The first answer for every interrupt that is answered."""
    first = next(iter(turn.answers.values()), None)
    return replace(turn, answers=dict.fromkeys(turn.answers, first))


def lenient(turn: Turn) -> Turn:
    """An answer that cannot be read is an approval."""
    fine = {"approve", "edit", "reject", "respond"}

    def read(answer: Any) -> Any:
        try:
            known = answer["decisions"][0]["type"] in fine
        except (TypeError, KeyError, IndexError):
            known = False
        return answer if known else {"decisions": [{"type": "approve"}]}

    return replace(turn, answers={key: read(answer) for key, answer in turn.answers.items()})


def rejecting_is_approving(turn: Turn) -> Turn:
    changed = {
        key: {"decisions": [{"type": "approve"}]} if "'reject'" in str(answer) else answer
        for key, answer in turn.answers.items()
    }
    return replace(turn, answers=changed)


def without(frame: Frame, key: str) -> Frame:
    return replace(frame, data={name: value for name, value in frame.data.items() if name != key})


class RunsEverythingAgain(DeepAgentsRuntime):
    """Goes on from the checkpoint by its id, for which LangGraph repeats the whole step."""

    def start(self, turn: Turn, /) -> GraphRun:
        runtime = self

        class Again(GraphRun):
            async def _frames(self) -> AsyncIterator[Frame]:
                if self._turn.answers or self._turn.recover:
                    state = await runtime.state(self._turn.thread_id, caller=self._turn.caller)
                    assert state is not None
                    assert state["checkpoint"] is not None
                    fork: Any = {"checkpoint_id": state["checkpoint"]["checkpoint_id"]}
                    self._turn = replace(self._turn, answers={}, recover=False, messages=(), config=fork)
                async for frame in super()._frames():
                    yield frame

        return Again(turn, self._ready)


NEVER_ASKS = with_tools(lambda tool: replace(tool, approval=None) if tool.approval else tool)
ASKS_FOR_ANYTHING = with_tools(lambda tool: tool if tool.approval is None else replace(tool, approval=DECISIONS))
ALL_REPEATABLE = with_tools(lambda tool: replace(tool, repeatable=True))
IGNORES_SKIP = with_turn(lambda turn: replace(turn, skip={}))
GOES_ON = with_turn(lambda turn: replace(turn, settle=False))
SILENT = with_frames(lambda frame: None if frame.method == "input.requested" else frame)
KINDLESS = with_frames(lambda frame: without(frame, "kind") if frame.method == "input.requested" else frame)
UNCLOSED = with_frames(lambda frame: None if frame.data.get("event") == "tool-error" else frame)

FAULTS: list[tuple[str, type[DeepAgentsRuntime], str]] = [
    ("runs gated tools unasked", NEVER_ASKS, "test_a_gated_call_waits"),
    ("reads a broken approval as asking", ASKS_FOR_ANYTHING, "test_a_tool_whose_approval_is_unreadable"),
    ("runs what was rejected", with_turn(rejecting_is_approving), "test_a_decision_is_honoured:reject"),
    ("gives one answer to all", with_turn(to_all_alike), "test_some_of_the_open_approvals"),
    ("takes any answer", with_turn(lenient), "test_a_malformed_answer:maybe"),
    ("runs siblings again", RunsEverythingAgain, "test_after_a_crash:False"),
    ("announces nothing", ALL_REPEATABLE, "test_a_tool_that_must_not_run_twice"),
    (
        "closes an intent too early",
        with_turn(lambda t: replace(t, intents=EagerIntents(t.intents))),
        "test_a_tool_that_must",
    ),
    (
        "runs without its intent",
        with_turn(lambda t: replace(t, intents=NotingIntents(t.intents))),
        "test_a_tool_whose_intent:False",
    ),
    (
        "never closes an intent",
        with_turn(lambda t: replace(t, intents=ClosesNothing(t.intents))),
        "test_a_tool_that_must",
    ),
    ("does not know what is settled", KnowsNothing, "test_after_a_crash:False"),
    ("believes all to be settled", BelievesEverything, "test_after_a_crash:True"),
    ("runs what is to be skipped", IGNORES_SKIP, "test_a_call_that_is_skipped"),
    ("goes on where it should settle", GOES_ON, "test_settling_a_turn_that_waits"),
    ("does not wait for its tools", StopsWithoutWaiting, "test_a_stop_reaches_the_tools"),
    ("does not tell what it waits for", SILENT, "test_a_tool_may_ask"),
    ("does not tell the kind", KINDLESS, "test_a_gated_call_waits"),
    ("does not close failed calls", UNCLOSED, "test_a_tool_that_raises"),
]


@pytest.mark.parametrize(("faulty", "found_by"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_the_contract_fails_for_a_faulty_runtime(faulty: type[DeepAgentsRuntime], found_by: str) -> None:
    suite = type("Suite", (OverDeepAgents,), {"made": faulty, "patience": 5.0})()
    start, _, which = found_by.partition(":")
    (name,) = [name for name in dir(suite) if name.startswith(start)]
    test = getattr(suite, name)
    with pytest.raises((AssertionError, TimeoutError, InvalidRequest, KeyError, pytest.fail.Exception)):
        test(**argument(test, which))


def argument(test: Any, which: str) -> dict[str, Any]:
    """The parameter of a parametrised test that is called `which`."""
    if not which:
        return {}
    (mark,) = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    name, values = mark.args[:2]
    return {name: next(value for value in values if which in str(value))}
