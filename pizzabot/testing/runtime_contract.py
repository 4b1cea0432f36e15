"""`AgentRuntimeContract`: what every agent runtime must do, as tests to inherit.

    class TestMyRuntime(AgentRuntimeContract):
        @asynccontextmanager
        async def runtime(self, storage: GraphStorage) -> AsyncIterator[AgentRuntime]:
            runtime = MyRuntime()
            await runtime.prepare(RuntimeServices(graph_storage=storage))
            yield runtime

The suite talks to the runtime through `Turn.model.chat` alone (a `ScriptedModel`), so it holds for any runtime that
answers by asking that model, with a graph or without. It brings its own `GraphStorage`, in memory, and opens a second
runtime over the same storage where a restart is meant.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

import pytest

from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import AgentRun, AgentRuntime, ChosenModel, Turn
from pizzabot_hookspecs.wire import Frame, FrameMethod, Message

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore

    from pizzabot.testing.scripted_model import Reply, ScriptedModel
    from pizzabot_hookspecs.storage_backends import GraphStorage

PATIENCE_SECONDS = 20.0
"""A test that takes longer has failed: a runtime that hangs must not hang its author's test run."""

CONCURRENT_TURNS = 20


class MemoryGraphStorage:
    """A `GraphStorage` that keeps everything in this process, for as long as the object lives."""

    def __init__(self) -> None:
        self._checkpointer: BaseCheckpointSaver[Any] | None = None
        self._store: BaseStore | None = None

    async def checkpointer(self) -> BaseCheckpointSaver[Any]:
        from langgraph.checkpoint.memory import InMemorySaver

        if self._checkpointer is None:
            self._checkpointer = InMemorySaver()
        return self._checkpointer

    async def store(self) -> BaseStore:
        from langgraph.store.memory import InMemoryStore

        if self._store is None:
            self._store = InMemoryStore()
        return self._store


class Listener:
    """Iterates a run in a task of its own, as the host does; a test waits for what it hears."""

    def __init__(self, run: AgentRun) -> None:
        self.frames: list[Frame] = []
        self._news = asyncio.Event()
        self.task = asyncio.ensure_future(self._listen(run))

    async def _listen(self, run: AgentRun) -> None:
        try:
            async for frame in run:
                self.frames.append(frame)
                self._news.set()
        finally:
            self._news.set()

    async def heard(self, text: str) -> None:
        """Wait until `text` is part of what was streamed; fails when the run ends without it."""
        while text not in text_of(self.frames):
            assert not self.task.done(), f"the run ended without streaming {text!r}, after {text_of(self.frames)!r}"
            self._news.clear()
            await self._news.wait()


def said(text: str, message_id: str = "u1") -> Message:
    """A message of the person."""
    return Message(id=message_id, role="user", parts=({"type": "text", "text": text},))


def turn(
    model: ChosenModel, *messages: Message, thread_id: str = "thread-1", run_id: str = "run-1", recover: bool = False
) -> Turn:
    return Turn(
        run_id=run_id, thread_id=thread_id, caller=LOCAL, model=model, messages=tuple(messages), recover=recover
    )


async def frames_of(run: AgentRun) -> list[Frame]:
    """Every frame of a run, iterated to its end."""
    return [frame async for frame in run]


def events(frames: Iterable[Frame]) -> list[Mapping[str, Any]]:
    """The data of the `messages` frames, in order."""
    return [frame.data for frame in frames if frame.method == "messages"]


def text_of(frames: Iterable[Frame]) -> str:
    """The streamed text: every text delta, in order."""
    deltas = (data["delta"] for data in events(frames) if data["event"] == "content-block-delta" and "delta" in data)
    return "".join(delta["text"] for delta in deltas if delta["type"] == "text-delta")


def content_text(content: Any) -> str:
    """The text of a message's `content`: a string, or a list of blocks of which those of type `text` count."""
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content if isinstance(block, dict) and block.get("type") == "text")


def conversation(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """`(type, text)` of every message in a state's values."""
    return [(message["type"], content_text(message["content"])) for message in values["messages"]]


def asked(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    """`(type, text)` of what a model was handed, without the system prompt."""
    return [(message.type, content_text(message.content)) for message in messages if message.type != "system"]


def model_of(*replies: Reply) -> tuple[ScriptedModel, ChosenModel]:
    """A model that gives `replies` in order, and the same as a runtime is handed it."""
    from pizzabot.testing.scripted_model import ScriptedModel, chosen

    model = ScriptedModel(script=list(replies))
    return model, chosen(model)


class ModelDown(Exception):
    """What the scripted model raises in the tests of errors."""


class AgentRuntimeContract(ABC):
    """Inherit it in a class whose name begins with `Test` and say how a runtime is made."""

    @abstractmethod
    def runtime(self, storage: GraphStorage) -> AbstractAsyncContextManager[AgentRuntime]:
        """A prepared runtime over `storage`. Entered twice with one storage where a test means a restart."""

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        asyncio.run(asyncio.wait_for(scenario, PATIENCE_SECONDS))

    # -- what a turn streams ----------------------------------------------------------------------------------------

    def test_frames_are_plain_json_in_the_order_of_time_and_never_root_lifecycle(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("Hello there, friend"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
            assert frames
            for frame in frames:
                assert json.loads(json.dumps(frame.data, allow_nan=False)) == frame.data
                assert frame.method in get_args(FrameMethod)
                assert isinstance(frame.namespace, tuple)
                assert all(isinstance(segment, str) for segment in frame.namespace)
                assert type(frame.timestamp) is int
                assert not (frame.method == "lifecycle" and not frame.namespace), "root lifecycle is the host's"
            assert all(before.timestamp <= after.timestamp for before, after in pairwise(frames))
            assert frames[0].timestamp > 1_600_000_000_000, "timestamps are milliseconds since the epoch"

        self.run(scenario())

    def test_text_deltas_concatenate_to_the_answer(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("One, two and three.\n  Four."))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("count"))))
            assert text_of(frames) == "One, two and three.\n  Four."

        self.run(scenario())

    def test_a_message_is_streamed_from_start_to_finish_with_its_run_id_in_every_event(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("Hello there"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                stream = events(await frames_of(runtime.start(turn(model, said("hi")))))
            names = [data["event"] for data in stream]
            assert names[0] == "message-start"
            assert names[-1] == "message-finish"
            assert names.count("message-start") == names.count("message-finish") == 1
            first_delta = names.index("content-block-delta")
            assert names.index("content-block-start") < first_delta < names.index("content-block-finish")
            assert {data["index"] for data in stream if "index" in data} == {0}
            assert stream[0]["id"]
            assert len({data["run_id"] for data in stream}) == 1

        self.run(scenario())

    def test_the_root_speaks_in_a_namespace_of_its_own_node(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("Hello"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
            (namespace,) = {frame.namespace for frame in frames if frame.method == "messages"}
            assert len(namespace) == 1
            assert namespace[0].startswith("model_request:")

        self.run(scenario())

    def test_the_last_root_values_hold_the_conversation_and_no_private_state(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("Hello"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
            values = [frame.data for frame in frames if frame.method == "values" and not frame.namespace]
            assert conversation(values[-1]) == [("human", "hi"), ("ai", "Hello")]
            for snapshot in values:
                assert "messages" in snapshot
                assert not [key for key in snapshot if key.startswith("_")]

        self.run(scenario())

    def test_text_of_every_script_arrives_whole(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            pieces = ["Grüße ", "👩‍🍳", "🍕 ", "比萨", "餅 ", "שלום"]
            question = "Что такое 比萨? 🍕"
            model, chosen = model_of(Reply(pieces=pieces))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said(question))))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert asked(model.calls[0].messages) == [("human", question)]
            assert text_of(frames) == "".join(pieces)
            assert state is not None
            assert conversation(state["values"]) == [("human", question), ("ai", "".join(pieces))]

        self.run(scenario())

    def test_nothing_happens_until_a_run_is_iterated(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                runtime.start(turn(chosen, said("hi")))
                for _ in range(50):
                    await asyncio.sleep(0)  # whatever was started behind our back gets its turn of the loop
                assert await runtime.state("thread-1", caller=LOCAL) is None
            assert not model.calls

        self.run(scenario())

    # -- what a thread remembers ------------------------------------------------------------------------------------

    def test_a_thread_has_no_state_before_its_first_turn_and_one_after_it(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("Hello"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                assert await runtime.state("thread-1", caller=LOCAL) is None
                await frames_of(runtime.start(turn(model, said("hi"))))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            assert json.loads(json.dumps(state, allow_nan=False)) == state
            assert conversation(state["values"]) == [("human", "hi"), ("ai", "Hello")]
            assert state["next"] == []
            assert state["interrupts"] == []
            assert state["created_at"]
            assert state["checkpoint"] is not None
            assert state["checkpoint"]["thread_id"] == "thread-1"
            assert state["checkpoint"]["checkpoint_id"]

        self.run(scenario())

    def test_a_message_has_the_same_id_in_the_stream_and_in_the_state(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("Hello"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            answer: Any = state["values"]["messages"][-1]  # type: ignore[index]
            assert answer["id"] == events(frames)[0]["id"]

        self.run(scenario())

    def test_the_ids_of_the_clients_messages_are_kept(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            _, model = model_of(Reply("One"), Reply("Two"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                await frames_of(runtime.start(turn(model, said("a", "id-of-a"))))
                await frames_of(runtime.start(turn(model, said("b", "id-of-b"), run_id="run-2")))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            messages: Any = state["values"]["messages"]
            assert [message["id"] for message in messages if message["type"] == "human"] == ["id-of-a", "id-of-b"]

        self.run(scenario())

    def test_a_second_turn_sees_the_first(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            model, chosen = model_of(Reply("Hello Ada"), Reply("Ada, as you said"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                await frames_of(runtime.start(turn(chosen, said("I am Ada"))))
                await frames_of(runtime.start(turn(chosen, said("Who am I?", "u2"), run_id="run-2")))
            first = [("human", "I am Ada")]
            assert asked(model.calls[0].messages) == first
            assert asked(model.calls[1].messages) == [*first, ("ai", "Hello Ada"), ("human", "Who am I?")]

        self.run(scenario())

    def test_a_thread_may_change_its_model_between_turns(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen

            models = [ScriptedModel(script=[Reply(f"answer {number}")]) for number in range(3)]
            abilities = (True, False, True)
            async with self.runtime(MemoryGraphStorage()) as runtime:
                for number, (model, able) in enumerate(zip(models, abilities, strict=True)):
                    choice = chosen(model, supports_tools=able, model_id=f"scripted:model-{number}")
                    message = said(f"question {number}", f"u{number}")
                    await frames_of(runtime.start(turn(choice, message, run_id=f"run-{number}")))
                state = await runtime.state("thread-1", caller=LOCAL)
            expected = [
                pair for number in range(3) for pair in (("human", f"question {number}"), ("ai", f"answer {number}"))
            ]
            assert asked(models[2].calls[0].messages) == expected[:-1]
            assert state is not None
            assert conversation(state["values"]) == expected

        self.run(scenario())

    def test_the_state_is_there_for_a_runtime_that_starts_later(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            storage = MemoryGraphStorage()
            model, chosen = model_of(Reply("Hello"), Reply("Again"))
            async with self.runtime(storage) as runtime:
                await frames_of(runtime.start(turn(chosen, said("hi"))))
                before = await runtime.state("thread-1", caller=LOCAL)
            async with self.runtime(storage) as runtime:
                assert await runtime.state("thread-1", caller=LOCAL) == before
                await frames_of(runtime.start(turn(chosen, said("more", "u2"), run_id="run-2")))
            assert asked(model.calls[1].messages) == [("human", "hi"), ("ai", "Hello"), ("human", "more")]

        self.run(scenario())

    def test_forgetting_a_thread_removes_it_alone_and_may_be_repeated(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            model, chosen = model_of(Reply("One"), Reply("Two"), Reply("Three"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                await runtime.forget("thread-1", caller=LOCAL)
                await frames_of(runtime.start(turn(chosen, said("a"))))
                await frames_of(runtime.start(turn(chosen, said("b"), thread_id="thread-2", run_id="run-2")))
                await runtime.forget("thread-1", caller=LOCAL)
                await runtime.forget("thread-1", caller=LOCAL)
                assert await runtime.state("thread-1", caller=LOCAL) is None
                other = await runtime.state("thread-2", caller=LOCAL)
                assert other is not None
                assert conversation(other["values"]) == [("human", "b"), ("ai", "Two")]
                await frames_of(runtime.start(turn(chosen, said("c", "u3"), run_id="run-3")))
            assert asked(model.calls[2].messages) == [("human", "c")]

        self.run(scenario())

    def test_turns_on_many_threads_at_once_share_nothing(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen

            model = ScriptedModel(script=lambda messages: Reply(f"you said {content_text(messages[-1].content)}"))
            choice = chosen(model)
            async with self.runtime(MemoryGraphStorage()) as runtime:

                async def hold(number: int) -> list[Frame]:
                    message = said(f"word-{number}", f"u{number}")
                    started = turn(choice, message, thread_id=f"thread-{number}", run_id=f"run-{number}")
                    return await frames_of(runtime.start(started))

                answers = await asyncio.gather(*(hold(number) for number in range(CONCURRENT_TURNS)))
                states = [await runtime.state(f"thread-{n}", caller=LOCAL) for n in range(CONCURRENT_TURNS)]
            for number, (frames, state) in enumerate(zip(answers, states, strict=True)):
                assert text_of(frames) == f"you said word-{number}"
                assert state is not None
                assert conversation(state["values"]) == [
                    ("human", f"word-{number}"),
                    ("ai", f"you said word-{number}"),
                ]
            assert all(len(asked(call.messages)) == 1 for call in model.calls)

        self.run(scenario())

    # -- stopping ---------------------------------------------------------------------------------------------------

    def test_a_stop_in_the_middle_keeps_the_streamed_text_under_its_id_and_the_thread_goes_on(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Gate, Reply

            gate = Gate()
            model, chosen = model_of(Reply("Once upon a time", gate=gate, gate_before=2), Reply("The end"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                run = runtime.start(turn(chosen, said("a story")))
                listener = Listener(run)
                await listener.heard("Once upon ")
                await run.stop()
                await listener.task
                state = await runtime.state("thread-1", caller=LOCAL)
                assert state is not None
                assert conversation(state["values"]) == [("human", "a story"), ("ai", "Once upon ")]
                partial: Any = state["values"]["messages"][-1]  # type: ignore[index]
                assert partial["id"] == events(listener.frames)[0]["id"]
                assert partial["response_metadata"]["cancelled"] is True
                assert state["next"] == []
                assert len(model.calls) == 1
                frames = await frames_of(runtime.start(turn(chosen, said("go on", "u2"), run_id="run-2")))
            assert text_of(frames) == "The end"
            assert asked(model.calls[1].messages) == [
                ("human", "a story"),
                ("ai", "Once upon "),
                ("human", "go on"),
            ]

        self.run(scenario())

    def test_a_stop_before_the_first_word_keeps_what_the_person_said(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Gate, Reply

            gate = Gate()
            model, chosen = model_of(Reply("never said", gate=gate), Reply("Yes"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                run = runtime.start(turn(chosen, said("hello?")))
                listener = Listener(run)
                await gate.reached.wait()
                await run.stop()
                await listener.task
                assert text_of(listener.frames) == ""
                await frames_of(runtime.start(turn(chosen, said("are you there?", "u2"), run_id="run-2")))
            assert asked(model.calls[1].messages) == [("human", "hello?"), ("human", "are you there?")]

        self.run(scenario())

    def test_a_run_that_is_stopped_before_it_is_iterated_asks_no_model(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                run = runtime.start(turn(chosen, said("hi")))
                await run.stop()
                assert text_of(await frames_of(run)) == ""
                assert not model.calls
                frames = await frames_of(runtime.start(turn(chosen, said("again", "u2"), run_id="run-2")))
            assert text_of(frames) == "Hello"

        self.run(scenario())

    def test_stopping_twice_or_after_the_end_changes_nothing(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Gate, Reply

            gate = Gate()
            _, chosen = model_of(Reply("Hello"), Reply("One two three", gate=gate, gate_before=1))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                ended = runtime.start(turn(chosen, said("hi")))
                await frames_of(ended)
                before = await runtime.state("thread-1", caller=LOCAL)
                await ended.stop()
                assert await runtime.state("thread-1", caller=LOCAL) == before

                run = runtime.start(turn(chosen, said("count", "u2"), run_id="run-2"))
                listener = Listener(run)
                await listener.heard("One ")
                await asyncio.gather(run.stop(), run.stop())
                await listener.task
                stopped = await runtime.state("thread-1", caller=LOCAL)
                await run.stop()
                assert await runtime.state("thread-1", caller=LOCAL) == stopped
            assert stopped is not None
            assert conversation(stopped["values"])[-2:] == [("human", "count"), ("ai", "One ")]

        self.run(scenario())

    # -- recovering -------------------------------------------------------------------------------------------------

    def test_a_turn_whose_process_died_is_finished_by_the_next_one(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Gate, Reply

            storage, gate = MemoryGraphStorage(), Gate()
            model, chosen = model_of(Reply("One two", gate=gate, gate_before=1), Reply("Here you are"))
            async with self.runtime(storage) as runtime:
                listener = Listener(runtime.start(turn(chosen, said("please"))))
                await listener.heard("One ")
                listener.task.cancel()
                with suppress(asyncio.CancelledError):
                    await listener.task
            async with self.runtime(storage) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said("please"), recover=True)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert text_of(frames) == "Here you are"
            assert asked(model.calls[1].messages) == [("human", "please")]
            assert state is not None
            assert conversation(state["values"]) == [("human", "please"), ("ai", "Here you are")]

        self.run(scenario())

    def test_a_turn_that_died_before_its_first_step_is_begun_by_its_recovery(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said("hi"), recover=True)))
            assert text_of(frames) == "Hello"
            assert asked(model.calls[0].messages) == [("human", "hi")]

        self.run(scenario())

    def test_recovering_a_finished_turn_asks_no_model_and_ends_with_its_values(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            storage = MemoryGraphStorage()
            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(storage) as runtime:
                await frames_of(runtime.start(turn(chosen, said("hi"))))
                before = await runtime.state("thread-1", caller=LOCAL)
            async with self.runtime(storage) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said("hi"), recover=True)))
                after = await runtime.state("thread-1", caller=LOCAL)
            assert len(model.calls) == 1
            assert text_of(frames) == ""
            values = [frame.data for frame in frames if frame.method == "values" and not frame.namespace]
            assert conversation(values[-1]) == [("human", "hi"), ("ai", "Hello")]
            assert after is not None
            assert before is not None
            assert after["values"] == before["values"]

        self.run(scenario())

    # -- failing ----------------------------------------------------------------------------------------------------

    def test_an_error_of_the_model_is_raised_as_it_is_and_the_thread_goes_on(self) -> None:
        async def scenario() -> None:
            from pizzabot.testing.scripted_model import Reply

            model, chosen = model_of(Reply("Half an", error=ModelDown("too many requests")), Reply("Fine now"))
            async with self.runtime(MemoryGraphStorage()) as runtime:
                listener = Listener(runtime.start(turn(chosen, said("hi"))))
                with pytest.raises(ModelDown, match="too many requests"):
                    await listener.task
                assert text_of(listener.frames) == "Half an"
                frames = await frames_of(runtime.start(turn(chosen, said("and now?", "u2"), run_id="run-2")))
            assert text_of(frames) == "Fine now"
            assert asked(model.calls[1].messages)[-1] == ("human", "and now?")
            assert asked(model.calls[1].messages)[0] == ("human", "hi")

        self.run(scenario())
