"""Who wrote a message is told to clients, in the stream and in every state, and never to a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.language_models.chat_model_stream import AsyncChatModelStream
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph_sdk.stream.decoders import MessagesDecoder

from pizzabot.testing.runtime_contract import (
    MemoryGraphStorage,
    call,
    frames_of,
    model_of,
    said,
    said_text,
    services_of,
    turn,
)
from pizzabot.testing.runtime_contract.workbench import Workbench
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import SubagentSpec
from pizzabot_hookspecs.wire import Frame

NAME = "Ada's worker"
"""OpenAI's API refuses it as the name of a speaker."""


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


@asynccontextmanager
async def with_a_worker() -> AsyncIterator[DeepAgentsRuntime]:
    worker = SubagentSpec(name=NAME, description="works", prompt="You work.", tools=tuple(Workbench().tools))
    async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
        await runtime.prepare(services_of(MemoryGraphStorage(), subagents=(worker,)))
        yield runtime


def delegating(messages: Sequence[BaseMessage]) -> Reply:
    results = [message for message in messages if isinstance(message, ToolMessage)]
    if any(isinstance(message, HumanMessage) and said_text(message) == "look around" for message in messages):
        return Reply("seen") if results else Reply("hm", tool_calls=[call("look", "looked", what="x")])
    task = call("task", "delegated", description="look around", subagent_type=NAME)
    return Reply("it is done") if results else Reply("let me ask", tool_calls=[task])


def starts(frames: Sequence[Frame]) -> list[tuple[int, str]]:
    """Depth and name of every message, in order."""
    return [
        (len(frame.namespace), frame.data["name"])
        for frame in frames
        if frame.method == "messages" and frame.data["event"] == "message-start"
    ]


def names(values: Any) -> list[tuple[str, str | None]]:
    return [(message["type"], message["name"]) for message in values["messages"]]


OF_THE_THREAD = [("human", None), ("ai", "pizza-bot"), ("tool", "task"), ("ai", "pizza-bot")]
OF_THE_WORKER = [("human", None), ("ai", NAME), ("tool", "look"), ("ai", NAME)]


def test_a_message_names_the_agent_that_says_it_as_it_begins() -> None:
    async def scenario() -> None:
        async with with_a_worker() as runtime:
            frames = await frames_of(runtime.start(turn(chosen(ScriptedModel(script=delegating)), said("please"))))
        assert starts(frames) == [(1, "pizza-bot"), (2, NAME), (2, NAME), (1, "pizza-bot")]

    run(scenario())


def test_every_answer_in_values_state_and_history_names_its_agent() -> None:
    async def scenario() -> None:
        async with with_a_worker() as runtime:
            frames = await frames_of(runtime.start(turn(chosen(ScriptedModel(script=delegating)), said("please"))))
            state = await runtime.state("thread-1", caller=LOCAL)
            states = await runtime.history("thread-1", limit=100, before=None, namespace=(), caller=LOCAL)
            values = [frame for frame in frames if frame.method == "values"]
            inner = next(frame.namespace for frame in values if frame.namespace)
            worked = await runtime.history("thread-1", limit=100, before=None, namespace=inner, caller=LOCAL)
        assert names(values[-1].data) == OF_THE_THREAD
        assert [names(frame.data) for frame in values if frame.namespace][-1] == OF_THE_WORKER
        assert state is not None
        for shown in (state, *states):
            assert names(shown["values"]) == OF_THE_THREAD[: len(names(shown["values"]))]
        for shown in worked:
            assert names(shown["values"]) == OF_THE_WORKER[: len(names(shown["values"]))]
        written = [m for shown in (*states, *worked) for task in shown["tasks"] for m in _written(task["result"])]
        assert {message["name"] for message in written if message["type"] == "ai"} == {"pizza-bot", NAME}

    run(scenario())


def test_the_answer_of_a_plain_conversation_and_one_that_was_cut_off_are_the_orchestrators() -> None:
    async def scenario() -> None:
        async with with_a_worker() as runtime:
            plain = chosen(ScriptedModel(script=[Reply("hello")]), supports_tools=False)
            frames = await frames_of(runtime.start(turn(plain, said("hi"))))
            _, choice = model_of(Reply("One two three"))
            cut = runtime.start(turn(choice, said("count", "u2"), run_id="run-2"))
            async for frame in cut:
                if frame.data.get("event") == "content-block-delta":
                    await cut.stop()
            state = await runtime.state("thread-1", caller=LOCAL)
        assert starts(frames) == [(1, "pizza-bot")]
        assert state is not None
        assert names(state["values"]) == [("human", None), ("ai", "pizza-bot")] * 2

    run(scenario())


def test_no_model_is_handed_the_name_of_a_speaker() -> None:
    async def scenario() -> None:
        model = ScriptedModel(script=delegating)
        async with with_a_worker() as runtime:
            await frames_of(runtime.start(turn(chosen(model), said("please"))))
            state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            shown: Any = {"messages": [*state["values"]["messages"], {"role": "user", "content": "hi", "name": "A B"}]}  # type: ignore[misc]
            await runtime.update_state("thread-1", shown, as_node=None, checkpoint_id=None, caller=LOCAL)
            await frames_of(runtime.start(turn(chosen(model), said("again", "u2"), run_id="run-2")))
            small = ScriptedModel(script=[Reply("hello")])
            choice = chosen(small, supports_tools=False, model_id="scripted:small")
            await frames_of(runtime.start(turn(choice, said("and again", "u3"), run_id="run-3")))
        handed = [message for asked in (*model.calls, *small.calls) for message in asked.messages]
        assert {message.name for message in handed if not isinstance(message, ToolMessage)} == {None}
        assert {message.name for message in handed if isinstance(message, ToolMessage)} == {"task", "look"}

    run(scenario())


def test_the_python_sdk_assembles_a_message_that_begins_with_a_name() -> None:
    async def scenario() -> None:
        _, model = model_of(Reply("Hello there, friend"))
        async with with_a_worker() as runtime:
            frames = await frames_of(runtime.start(turn(model, said("hi"))))
        decoder = MessagesDecoder([], AsyncChatModelStream)
        messages: list[Any] = []
        for frame in frames:
            if frame.method == "messages":  # at the root, as the host shows them to that SDK (wire.md §0)
                event = {"method": "messages", "params": {"namespace": [], "data": dict(frame.data)}}
                messages.extend(decoder.feed(event))
        (message,) = messages
        answer = await message.output
        assert isinstance(answer, AIMessage)
        assert answer.text == "Hello there, friend"

    run(scenario())


def _written(result: Any) -> list[dict[str, Any]]:
    return list((result or {}).get("messages") or ())
