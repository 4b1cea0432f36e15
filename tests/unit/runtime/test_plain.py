"""Live objects become plain JSON, messages as their own `model_dump` has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.types import Command, Interrupt
from pydantic import BaseModel

from pizzabot_builtin_plugins.deepagents_runtime.plain import DEPTH_LIMIT, flat, plain, public_values

MESSAGES = [
    HumanMessage("hi", id="u1", name="Ada"),
    HumanMessage([{"type": "text", "text": "look"}, {"type": "image", "url": "x"}], id="u2"),
    SystemMessage("be kind", id="s1"),
    AIMessage("hello", id="a1", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    AIMessage(
        [{"type": "text", "text": "x"}],
        id="a2",
        tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}],
        response_metadata={"finish_reason": "stop"},
    ),
    ToolMessage("42", id="t1", tool_call_id="c1", name="add", status="error"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.id)
def test_a_flat_message_is_what_model_dump_gives_without_the_artifact(message: BaseMessage) -> None:
    dumped = message.model_dump()
    dumped.pop("artifact", None)
    assert flat(message) == dumped


def test_a_chunk_that_ended_up_in_the_state_is_an_ai_message() -> None:
    assert flat(AIMessageChunk("hello", id="a1"))["type"] == "ai"


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    label: Any


class Model(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("value", "json_value"),
    [
        (2**70, str(2**70)),
        (float("nan"), None),
        (float("-inf"), None),
        (b"abc", {"bytes": 3}),
        (Colour.RED, "red"),
        (Point(1, {"a": (1, 2)}), {"x": 1, "label": {"a": [1, 2]}}),
        (Model(name="n"), {"name": "n"}),
        ({1: {"x"}}, {"1": ["x"]}),
        ("half \ud83d", "half \ufffd"),
        ("pair \ud83d\ude00", "pair 😀"),
        (Interrupt(value={"q": 1}, id="i1"), {"id": "i1", "value": {"q": 1}}),
    ],
)
def test_values_without_a_json_form_get_one(value: Any, json_value: Any) -> None:
    assert plain(value) == json_value


def test_a_command_says_that_it_is_one() -> None:
    result = plain(Command(update={"messages": [ToolMessage("done", tool_call_id="c1", id="t1")]}))
    assert result["lg_name"] == "Command"
    assert result["update"]["messages"][0]["content"] == "done"


def test_a_value_that_contains_itself_comes_to_an_end() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    text = json.dumps(plain(value))
    assert text.count("self") == DEPTH_LIMIT
    assert "nested too deeply" in text


def test_an_object_of_any_other_kind_is_written_as_its_text() -> None:
    class Other:
        def __str__(self) -> str:
            return "other"

    assert plain([Other()]) == ["other"]


def test_public_values_have_messages_and_nothing_of_the_middlewares() -> None:
    values = {
        "_summarization_event": {},
        "__interrupt__": [],
        "jump_to": None,
        "run_model_call_count": 3,
        "structured_response": None,
        "files": {"/a": {"content": "x"}},
    }
    assert public_values(values) == {"files": {"/a": {"content": "x"}}, "messages": []}
