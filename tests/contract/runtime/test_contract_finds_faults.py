"""The contract passes for a correct runtime without a graph, and fails for each of its faulty variants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest

from pizzabot.testing.runtime_contract import AgentRuntimeContract
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, RuntimeServices, Turn
from pizzabot_hookspecs.storage_backends import GraphStorage
from pizzabot_hookspecs.wire import Frame

from .streaming_runtime import StreamingRun, StreamingRuntime


class OverStreaming(AgentRuntimeContract):
    made: ClassVar[type[StreamingRuntime]] = StreamingRuntime

    @asynccontextmanager
    async def runtime(self, storage: GraphStorage) -> AsyncIterator[AgentRuntime]:
        runtime = self.made()
        await runtime.prepare(RuntimeServices(graph_storage=storage))
        yield runtime


class TestStreamingRuntime(OverStreaming):
    """Honest for any runtime: this one has neither graph nor checkpoints."""


def test_a_runtime_without_tools_is_not_tested_for_them_and_one_with_tools_is() -> None:
    class WithTools(AgentRuntimeContract):
        tools = True

    def tests(suite: type) -> set[str]:
        return {name for name in dir(suite) if name.startswith("test_") and getattr(suite, name) is not None}

    assert tests(OverStreaming) < tests(WithTools)
    assert "test_a_gated_call_waits_and_says_what_it_would_do_and_how_it_may_be_decided" not in tests(OverStreaming)


def with_run(run: type[StreamingRun]) -> type[StreamingRuntime]:
    class Faulty(StreamingRuntime):
        def start(self, turn: Turn, /) -> StreamingRun:
            return run(self, turn)

    return Faulty


class LosesPartialText(StreamingRun):
    def spoken(self) -> dict[str, Any]:
        return super().spoken() if not self.stopped.is_set() else {**super().spoken(), "content": ""}


class IgnoresStop(StreamingRun):
    async def stop(self) -> None:
        return None


class SendsRootLifecycle(StreamingRun):
    async def answer(self) -> AsyncIterator[Frame]:
        yield self.frame("lifecycle", {"event": "running"})
        async for frame in super().answer():
            yield frame


class MintsItsOwnIds(StreamingRun):
    async def answer(self) -> AsyncIterator[Frame]:
        async for frame in super().answer():
            if frame.method == "values":
                frame.data["messages"][0]["id"] = "minted"
                await self.runtime.save(self.turn.thread_id, frame.data["messages"])
            yield frame


class AnswersWithAnotherId(StreamingRun):
    def spoken(self) -> dict[str, Any]:
        return {**super().spoken(), "id": "another"}


class SwallowsErrors(StreamingRun):
    async def say(self, history: list[dict[str, Any]]) -> AsyncIterator[Frame]:
        try:
            async for frame in super().say(history):
                yield frame
        except Exception:
            yield self.message("error", message="something went wrong")


class RepeatsARecoveredTurn(StreamingRun):
    def __init__(self, runtime: StreamingRuntime, turn: Turn) -> None:
        super().__init__(runtime, turn)
        object.__setattr__(turn, "recover", False)


class KeepsWhatTheLogMissed(StreamingRun):
    def told(self, text: str) -> list[Frame]:
        return super().told("")


class LeaksLiveObjects(StreamingRun):
    def message(self, event: str, **more: Any) -> Frame:
        return super().message(event, **more, turn=self.turn)


class DropsTheLastPiece(StreamingRun):
    async def next_piece(self, pieces: Any) -> str | None:
        piece = await super().next_piece(pieces)
        return None if piece is not None and len(self.pieces) > 1 else piece


class RunsTimeBackwards(StreamingRun):
    count = 0

    def frame(self, method: Any, data: Any, namespace: tuple[str, ...] = ()) -> Frame:
        self.count += 1
        frame = super().frame(method, data, namespace)
        return Frame(method=method, data=data, timestamp=frame.timestamp - self.count, namespace=namespace)


class ForgetsNothing(StreamingRuntime):
    async def forget(self, thread_id: str, /, *, caller: Any) -> None:
        return None


class ForgetsEverything(StreamingRuntime):
    async def forget(self, thread_id: str, /, *, caller: Any) -> None:
        for item in await self.store.asearch(("threads",)):
            await self.store.adelete(("threads",), item.key)


class SharesOneThread(StreamingRuntime):
    async def load(self, thread_id: str) -> list[dict[str, Any]] | None:
        return await super().load("everybody")

    async def save(self, thread_id: str, messages: list[dict[str, Any]]) -> None:
        await super().save("everybody", messages)


class HasNoMemory(StreamingRuntime):
    def __init__(self) -> None:
        super().__init__()
        self.here: dict[str, list[dict[str, Any]]] = {}

    async def load(self, thread_id: str) -> list[dict[str, Any]] | None:
        return self.here.get(thread_id)

    async def save(self, thread_id: str, messages: list[dict[str, Any]]) -> None:
        self.here[thread_id] = list(messages)


class WorksBeforeItIsIterated(StreamingRuntime):
    def start(self, turn: Turn, /) -> StreamingRun:
        self.early = asyncio.ensure_future(self.save(turn.thread_id, []))
        return super().start(turn)


FAULTS: list[tuple[type[StreamingRuntime], str]] = [
    (with_run(LosesPartialText), "test_a_stop_in_the_middle"),
    (with_run(IgnoresStop), "test_a_run_that_is_stopped_before_it_is_iterated"),
    (with_run(SendsRootLifecycle), "test_frames_are_plain_json"),
    (with_run(MintsItsOwnIds), "test_the_ids_of_the_clients_messages"),
    (with_run(AnswersWithAnotherId), "test_a_message_has_the_same_id"),
    (with_run(SwallowsErrors), "test_an_error_of_the_model"),
    (with_run(RepeatsARecoveredTurn), "test_recovering_a_finished_turn"),
    (with_run(KeepsWhatTheLogMissed), "test_what_the_log_missed"),
    (with_run(LeaksLiveObjects), "test_frames_are_plain_json"),
    (with_run(DropsTheLastPiece), "test_text_deltas_concatenate"),
    (with_run(RunsTimeBackwards), "test_frames_are_plain_json"),
    (ForgetsNothing, "test_forgetting_a_thread"),
    (ForgetsEverything, "test_forgetting_a_thread"),
    (SharesOneThread, "test_turns_on_many_threads"),
    (HasNoMemory, "test_the_state_is_there_for_a_runtime_that_starts_later"),
    (WorksBeforeItIsIterated, "test_nothing_happens_until"),
]


@pytest.mark.parametrize(("faulty", "found_by"), FAULTS, ids=lambda value: str(getattr(value, "__name__", value)))
def test_the_contract_fails_for_a_faulty_runtime(faulty: type[StreamingRuntime], found_by: str) -> None:
    suite = type("Suite", (OverStreaming,), {"made": faulty, "patience": 2.0})()
    (name,) = [name for name in dir(suite) if name.startswith(found_by)]
    with pytest.raises((AssertionError, TypeError, TimeoutError, pytest.fail.Exception)):
        getattr(suite, name)()


def test_a_runtime_that_never_ends_fails_within_the_suites_patience() -> None:
    class Hangs(StreamingRun):
        async def next_piece(self, pieces: Any) -> str | None:
            await asyncio.Event().wait()
            return None

    suite = type("Suite", (OverStreaming,), {"made": with_run(Hangs), "patience": 0.2})()
    with pytest.raises(TimeoutError):
        suite.test_text_deltas_concatenate_to_the_answer()
