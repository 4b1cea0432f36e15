"""A model gets our prompt, the conversation, and no tools: whatever the libraries would add for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pizzabot.testing.runtime_contract import RecordedIntents, asked, said_text
from pizzabot.testing.scripted_model import Call, Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_hookspecs.model_providers import ModelDescriptor


def handed(model: ScriptedModel, *, supports_tools: bool | None, going_on: bool = False) -> Call:
    """The first call of `model` in a turn on the graph that is built for it."""
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from pizzabot_builtin_plugins.deepagents_runtime.graph_building import build_graph
    from pizzabot_builtin_plugins.deepagents_runtime.intents import IntentLedger
    from pizzabot_builtin_plugins.deepagents_runtime.middleware import Workshop
    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
    from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools

    graph = build_graph(
        chosen(model, supports_tools=supports_tools),
        tools=ToolSet(),
        workshop=Workshop(),
        checkpointer=InMemorySaver(),
        going_on=going_on,
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    tools = TurnTools(thread_id="t", log=RecordedIntents(), ledger=IntentLedger())
    asyncio.run(graph.ainvoke({"messages": [HumanMessage("hi", id="u1")]}, config, context=tools))
    return model.calls[0]


@pytest.mark.parametrize("going_on", [False, True])
def test_a_model_without_tool_calling_gets_a_prompt_of_at_most_300_characters_and_no_tools(*, going_on: bool) -> None:
    call = handed(ScriptedModel(script=[Reply("hello")]), supports_tools=False, going_on=going_on)
    assert [said_text(message) for message in call.messages] == [prompts.CONVERSATION, "hi"]
    assert len(prompts.CONVERSATION) <= 300
    assert call.tools == ()


@pytest.mark.parametrize("supports_tools", [True, None])
@pytest.mark.parametrize(
    ("provider", "model_name"),
    [
        ("scripted", "scripted-1"),
        ("anthropic", "claude-sonnet-4-6"),
        ("anthropic", "claude-haiku-4-5"),
        ("openai", "gpt-5.2-codex"),
        ("ollama", "qwen3:4b"),
    ],
)
def test_a_model_with_tool_calling_gets_our_prompt_alone_and_exactly_our_tools(
    provider: str, model_name: str, supports_tools: bool | None
) -> None:
    model = ScriptedModel(script=[Reply("hello")], provider=provider, model_name=model_name)
    call = handed(model, supports_tools=supports_tools)
    assert [message.type for message in call.messages] == ["system", "human"]
    assert call.messages[0].content == prompts.AGENT
    assert asked(call.messages) == [("human", "hi")]
    assert sorted(call.tools) == ["ask_user", "edit_file", "eval", "glob", "grep", "ls", "read_file", "write_file"]


def test_a_model_that_calls_a_withheld_tool_by_guessing_is_told_that_there_is_none() -> None:
    names = ("delete", "task", "write_todos", "execute")
    guesses = [{"name": name, "args": {}, "id": name, "type": "tool_call"} for name in names]
    model = ScriptedModel(script=[Reply("", tool_calls=guesses), Reply("I see")])
    handed(model, supports_tools=True)
    results = [message for message in model.calls[1].messages if message.type == "tool"]
    assert [result.tool_call_id for result in results] == list(names)
    assert all(result.status == "error" and "not a valid tool" in result.text for result in results)


def describe(window: int | None) -> ModelDescriptor:
    return ModelDescriptor(id="m", display_name="m", context_window=window)


@pytest.mark.parametrize(
    ("profile", "window", "known"),
    [
        (None, 8192, 8192),
        ({"max_input_tokens": 0}, 8192, 8192),
        ({"max_input_tokens": 0}, None, None),
        ({"max_input_tokens": 4096}, 8192, 4096),
        (None, None, None),
    ],
)
def test_the_context_window_is_the_models_own_or_else_the_described_one(
    profile: dict[str, Any] | None, window: int | None, known: int | None
) -> None:
    from pizzabot_builtin_plugins.deepagents_runtime.graph_building import with_known_window

    model = with_known_window(ScriptedModel(script=[], profile=profile), describe(window))
    assert (model.profile or {}).get("max_input_tokens") == known


def test_a_plain_conversation_stays_within_a_small_window_and_forgets_nothing_of_the_thread() -> None:
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from pizzabot_builtin_plugins.deepagents_runtime.graph_building import build_graph
    from pizzabot_builtin_plugins.deepagents_runtime.middleware import Workshop
    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet

    model = ScriptedModel(script=lambda _: Reply("ok"))
    choice = chosen(model, supports_tools=False, context_window=200)
    graph = build_graph(choice, tools=ToolSet(), workshop=Workshop(), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}

    async def talk() -> int:
        for number in range(12):
            words = f"question {number} " + "word " * 12
            await graph.ainvoke({"messages": [HumanMessage(words, id=f"u{number}")]}, config)
        await graph.ainvoke({"messages": [HumanMessage("long " * 500, id="long")]}, config)
        return len((await graph.aget_state(config)).values["messages"])

    assert asyncio.run(talk()) == 26
    last_but_one = asked(model.calls[11].messages)
    assert 1 < len(last_but_one) < 12
    assert last_but_one[0][0] == "human"
    assert last_but_one[-1][1].startswith("question 11 ")
    assert sum(len(text) for _, text in last_but_one) < 200 * 3
    assert [message.type for message in model.calls[12].messages] == ["system", "human"]
