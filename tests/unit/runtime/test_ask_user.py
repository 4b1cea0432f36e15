"""The tool `ask_user` in real turns: it asks before it does anything, and its result is the answer in words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from pizzabot.testing.runtime_contract import (
    MemoryGraphStorage,
    call,
    frames_of,
    model_of,
    requests,
    said,
    services_of,
    text_of,
    turn,
)
from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.ask_user import DESCRIPTION, ask_user_tool
from pizzabot_builtin_plugins.deepagents_runtime.interrupts import shown
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.support.questions import checked_question

SIZES = [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large"}]
TABLE = [
    {"name": "people", "label": "People", "type": "number", "required": True},
    {"name": "inside", "label": "Inside", "type": "checkbox"},
]


@asynccontextmanager
async def prepared(*more: BaseTool) -> AsyncIterator[DeepAgentsRuntime]:
    tools = [AgentTool(tool=tool, repeatable=True) for tool in more]
    async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
        await runtime.prepare(services_of(MemoryGraphStorage(), tools=tools))
        yield runtime


def results(model: ScriptedModel) -> dict[str, Any]:
    """What the model was told by the tools, by call."""
    return {told.tool_call_id: told.content for told in model.calls[-1].messages if isinstance(told, ToolMessage)}


async def answered(answer: Any, **arguments: Any) -> tuple[Any, str]:
    """What a call of the tool asks, and its result."""
    model, choice = model_of(Reply(tool_calls=(call("ask_user", "c1", **arguments),)), Reply("thanks"))
    async with prepared() as runtime:
        frames = await frames_of(runtime.start(turn(choice, said("go"))))
        [(interrupt_id, asked)] = requests(frames).items()
        frames = await frames_of(runtime.start(turn(choice, run_id="run-2", answers={interrupt_id: answer})))
        assert text_of(frames) == "thanks"
        [result] = results(model).values()
        return asked["payload"], result


def test_a_choice_is_asked_in_its_form_and_its_result_is_the_label() -> None:
    asked, result = asyncio.run(answered({"kind": "option", "id": "l"}, question="Which size?", options=SIZES))
    assert asked == checked_question(
        {"version": 1, "mode": "choice_with_other", "question": "Which size?", "options": SIZES}
    )
    assert result == "Large"


def test_a_form_is_told_in_lines_and_as_json() -> None:
    answer = {"kind": "form", "values": {"people": 2, "inside": False}}
    asked, result = asyncio.run(answered(answer, question="Book a table", fields=TABLE, options=None))
    assert (asked["version"], asked["mode"], asked["fields"]) == (2, "form", TABLE)
    assert result == 'People: 2\nInside: no\n\n```json\n{"people": 2, "inside": false}\n```'


def test_arguments_of_no_known_form_are_asked_in_words_and_not_refused() -> None:
    fields = [{"name": "constructor", "label": "Who", "type": "secret"}]
    asked, result = asyncio.run(answered({"kind": "message", "value": "me"}, question="So?", fields=fields, more=1))
    assert asked == {"version": 1, "mode": "free_text", "question": "So?", "text": "So?\n- Who"}
    assert result == "me"


def test_two_questions_are_answered_one_after_the_other_and_each_result_is_its_own() -> None:
    async def scenario() -> None:
        calls = (call("ask_user", "c1", question="Who?"), call("ask_user", "c2", question="Where?"))
        model, choice = model_of(Reply(tool_calls=calls), Reply("thanks"))
        async with prepared() as runtime:
            asked = {
                found["payload"]["question"]: found["interrupt_id"]
                for found in requests(await frames_of(runtime.start(turn(choice, said("go"))))).values()
            }
            answer = {asked["Where?"]: {"kind": "message", "value": "here"}}
            frames = await frames_of(runtime.start(turn(choice, run_id="run-2", answers=answer)))
            assert list(requests(frames)) == [asked["Who?"]]
            answer = {asked["Who?"]: {"kind": "text", "value": "me"}}
            frames = await frames_of(runtime.start(turn(choice, run_id="run-3", answers=answer)))
            assert text_of(frames) == "thanks"
        assert results(model) == {"c1": "me", "c2": "here"}

    asyncio.run(scenario())


def test_the_tool_on_the_page_for_authors_asks_word_for_word() -> None:
    page = Path(__file__).parents[3] / "docs" / "extend" / "tools.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [text] = [block for block in blocks if "interrupt(question)" in block]
    module: dict[str, Any] = {"__name__": "page"}
    exec(compile(text, str(page), "exec"), module)

    async def scenario() -> None:
        model, choice = model_of(Reply(tool_calls=(call("order_size", "c1"),)), Reply("thanks"))
        async with prepared(module["order_size"]) as runtime:
            [(interrupt_id, asked)] = requests(await frames_of(runtime.start(turn(choice, said("go"))))).items()
            assert asked["payload"]["mode"] == "choice_with_other"
            answer = {interrupt_id: {"kind": "option", "id": "l"}}
            await frames_of(runtime.start(turn(choice, run_id="run-2", answers=answer)))
        assert results(model) == {"c1": "Large"}

    asyncio.run(scenario())


def test_the_description_is_short_and_says_when_to_ask() -> None:
    assert len(DESCRIPTION) <= 900
    assert "cannot go on" in DESCRIPTION
    assert "one question at a time" in DESCRIPTION
    assert ask_user_tool().name == "ask_user"


def test_a_question_is_shown_as_it_is_and_one_that_only_claims_to_be_one_is_degraded() -> None:
    question: Any = checked_question({"version": 1, "mode": "choice_with_other", "question": "?", "options": SIZES})
    assert shown(question) == question
    assert shown({"version": 7, "mode": "wizard", "question": "So?", "more": 1})["mode"] == "free_text"
    assert shown({"question": "So?", "version": 7}) == {"question": "So?", "version": 7}
