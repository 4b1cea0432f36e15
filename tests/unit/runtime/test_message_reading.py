"""Messages that clients write, in every spelling, and what is said of those that are none."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from pizzabot_builtin_plugins.deepagents_runtime.message_reading import FAULT_CHARACTERS, read_messages
from pizzabot_builtin_plugins.deepagents_runtime.plain import flat


def read(value: Any) -> list[BaseMessage]:
    fields: dict[str, str] = {}
    messages = read_messages(value, fields)
    assert fields == {}
    return messages


def faults(value: Any) -> dict[str, str]:
    fields: dict[str, str] = {}
    read_messages(value, fields)
    return fields


@pytest.mark.parametrize(
    "value",
    [
        "hi",
        ["human", "hi"],
        [["user", "hi"]],
        ["hi"],
        {"role": "user", "content": "hi"},
        {"type": "human", "content": "hi"},
        {"type": "human", "data": {"content": "hi", "additional_kwargs": {}}},
        {"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "hi"}},
        {"lc": 1, "type": "constructor", "id": ["x", "HumanMessageChunk"], "kwargs": {"content": "hi"}},
    ],
)
def test_one_message_in_every_spelling(value: Any) -> None:
    (message,) = read(value)
    assert isinstance(message, HumanMessage)
    assert message.content == "hi"
    assert message.id


def test_two_texts_are_two_messages_unless_the_first_is_a_role() -> None:
    assert [message.content for message in read(["hi", "there"])] == ["hi", "there"]
    assert [message.content for message in read(["human", "there"])] == ["there"]


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("hi", id="u1", name="Ada"),
        SystemMessage("be kind", id="s1"),
        AIMessage(
            [{"type": "text", "text": "x"}],
            id="a1",
            name="worker",
            tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}],
            invalid_tool_calls=[{"name": "sub", "args": "{", "id": "c2", "error": "?", "type": "invalid_tool_call"}],
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            response_metadata={"finish_reason": "stop", "cancelled": True},
            additional_kwargs={"refusal": None},
        ),
        ToolMessage("42", id="t1", tool_call_id="c1", name="add", status="error"),
    ],
    ids=lambda message: message.id,
)
def test_a_message_comes_back_as_a_state_showed_it(message: BaseMessage) -> None:
    (again,) = read([flat(message)])
    assert flat(again) == flat(message)


def test_a_message_is_taken_out_by_its_id() -> None:
    (message,) = read([{"type": "remove", "id": "u1"}])
    assert message == RemoveMessage(id="u1")


def test_text_that_utf_8_cannot_write_is_mended() -> None:
    (message,) = read({"type": "human", "content": "a\ud83d\ude00b\ud83d"})
    assert message.content == "a\U0001f600b�"


@pytest.mark.parametrize(
    ("value", "field", "fault"),
    [
        (None, "messages.0", "this is None"),
        (3, "messages.0", "this is 3"),
        (["fine", {"type": "poem", "content": "x"}], "messages.1", "poem"),
        ([{"type": "human"}], "messages.0", "content"),
        ([{"content": "x"}], "messages.0", "role"),
        ([{"type": "ai", "content": {"a": 1}}], "messages.0", "content"),
        ([{"type": "tool", "content": "x"}], "messages.0", "tool_call_id"),
        ([{"type": "remove"}], "messages.0", "id"),
        ([["human", "hi", "there"]], "messages.0", "Message as a sequence"),
        ([{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}], "messages.0", "system"),
        ([{"lc": 1, "type": "constructor", "id": "system", "kwargs": {}}], "messages.0", "None"),
        ([{"type": "ai", "content": "", "tool_calls": [{"nope": 1}]}], "messages.0", "nope"),
        ([{"type": "ai", "content": "", "tool_calls": 3}], "messages.0", ""),
        ([{"type": "ai", "content": "x", "usage_metadata": {"input_tokens": "many"}}], "messages.0", "usage_metadata"),
    ],
)
def test_what_is_no_message_is_named_by_its_place_with_the_reason(value: Any, field: str, fault: str) -> None:
    found = faults(value)
    assert list(found) == [field]
    assert fault in found[field]
    assert "\n" not in found[field]


def test_the_reason_does_not_repeat_a_long_message() -> None:
    (fault,) = faults([{"text": "x" * 10_000}]).values()
    assert len(fault) <= FAULT_CHARACTERS
