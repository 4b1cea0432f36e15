"""What goes into a graph (spec/05 §10), and how an interrupt comes out of it (design/wire.md §5)."""

from __future__ import annotations

import pytest

from pizzabot_builtin_plugins.deepagents_runtime.inputs import to_graph
from pizzabot_builtin_plugins.deepagents_runtime.interrupts import kind_of, shown
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.wire import JsonValue, Message, Part


def message(*parts: Part, role: str = "user") -> Message:
    return Message(id="u1", role=role, parts=parts)  # type: ignore[arg-type]


def test_text_parts_become_one_text_under_the_clients_id() -> None:
    (given,) = to_graph([message({"type": "text", "text": "Hello "}, {"type": "text", "text": "there"})])
    assert (given.id, given.type, given.content) == ("u1", "human", "Hello there")


def test_with_a_file_the_parts_become_blocks_and_the_file_a_reference() -> None:
    (given,) = to_graph(
        [
            message(
                {"type": "text", "text": "look"},
                {"type": "text", "text": ""},
                {"type": "file", "mediaType": "image/png", "url": "attachment://1", "name": "a.png", "sizeBytes": 3},
            )
        ]
    )
    assert given.content == [
        {"type": "text", "text": "look"},
        {
            "type": "file",
            "url": "attachment://1",
            "mime_type": "image/png",
            "metadata": {"name": "a.png", "sizeBytes": 3},
        },
    ]


def test_the_metadata_of_a_message_stays_with_it() -> None:
    metadata: dict[str, JsonValue] = {"quotes": ["so"]}
    (given,) = to_graph([Message(id="u1", role="user", parts=({"type": "text", "text": "a"},), metadata=metadata)])
    assert given.additional_kwargs == {"pizzabot": metadata}
    (bare,) = to_graph([message({"type": "text", "text": "a"})])
    assert bare.additional_kwargs == {}


def test_unpaired_surrogates_do_not_reach_the_model() -> None:
    (given,) = to_graph([message({"type": "text", "text": "a\ud83d"})])
    assert given.content == "a\ufffd"


def test_a_message_of_another_role_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        to_graph([message({"type": "text", "text": "x"}, role="system")])
    assert caught.value.code == "unsupported_role"


def test_an_approval_is_shown_in_both_spellings() -> None:
    value = {
        "action_requests": [{"name": "deploy", "args": {"env": "prod"}, "description": "?"}],
        "review_configs": [{"action_name": "deploy", "allowed_decisions": ["approve"]}],
    }
    result = shown(value)
    assert result["actionRequests"] == result["action_requests"] == value["action_requests"]
    assert result["reviewConfigs"] == result["review_configs"]
    assert result["review_configs"] == [
        {
            "action_name": "deploy",
            "actionName": "deploy",
            "allowed_decisions": ["approve"],
            "allowedDecisions": ["approve"],
        }
    ]


def test_a_decided_call_is_recognisable_in_both_spellings() -> None:
    value = {"type": "tool_approval", "tool_call_id": "c1", "action_requests": [{"name": "d", "args_schema": {"a": 1}}]}
    result = shown(value)
    assert kind_of(value) == "approval"
    assert result["toolCallId"] == result["tool_call_id"] == "c1"
    assert result["action_requests"] == [{"name": "d", "args_schema": {"a": 1}, "argsSchema": {"a": 1}}]


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        ("which?", {"question": "which?"}),
        ({"question": "which?", "answer_schema": {}}, {"question": "which?", "answer_schema": {}}),
        ({"options": [1]}, {"question": "", "options": [1]}),
        ({"question": "q", "action_requests": "no list"}, {"question": "q", "action_requests": "no list"}),
        (["a", 3], {"question": '["a", 3]'}),
        (None, {"question": "null"}),
    ],
)
def test_whatever_a_tool_asks_is_shown_as_a_question(value: object, payload: object) -> None:
    assert kind_of(value) == "input"
    assert shown(value) == payload
