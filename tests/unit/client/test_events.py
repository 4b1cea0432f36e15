"""The reader of protocol frames: what becomes an event, what is left out, and what cannot confuse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pizzabot.client import (
    EventReader,
    Gap,
    MessageCut,
    Question,
    ReasoningDelta,
    RunEnded,
    RunOutcome,
    TextDelta,
    ToolFailed,
    ToolFinished,
    ToolStarted,
)
from pizzabot.client.events import MAX_OPEN_BLOCKS, is_last, run_of


def start(message_id: str, *, role: str = "ai", run: str = "llm") -> dict[str, Any]:
    return {"event": "message-start", "id": message_id, "role": role, "run_id": run}


def delta(text: str, *, kind: str = "text", run: str = "llm", index: int = 0) -> dict[str, Any]:
    piece = {"type": f"{kind}-delta", kind: text}
    return {"event": "content-block-delta", "index": index, "delta": piece, "run_id": run}


def finish(text: str, *, index: int = 0) -> dict[str, Any]:
    return {"event": "content-block-finish", "index": index, "content": {"type": "text", "text": text}, "run_id": "llm"}


def read(make_frame: Callable[..., Any], *data: dict[str, Any], method: str = "messages", **more: Any) -> list[Any]:
    reader = EventReader("r")
    return [event for item in data for event in reader.read(make_frame(method, item, **more))]


def test_text_and_reasoning_come_as_pieces_of_their_message(make_frame: Any) -> None:
    events = read(make_frame, start("m"), delta("hm", kind="reasoning"), delta("Hel", index=1), delta("lo", index=1))
    assert events == [
        ReasoningDelta(text="hm", message_id="m"),
        TextDelta(text="Hel", message_id="m"),
        TextDelta(text="lo", message_id="m"),
    ]


def test_two_messages_at_once_keep_their_ids(make_frame: Any) -> None:
    events = read(make_frame, start("a", run="1"), start("b", run="2"), delta("x", run="1"), delta("y", run="2"))
    assert [(event.text, event.message_id) for event in events] == [("x", "a"), ("y", "b")]


def test_a_message_that_was_not_streamed_is_read_from_its_finish(make_frame: Any) -> None:
    assert read(make_frame, start("m"), finish("whole")) == [TextDelta(text="whole", message_id="m")]


def test_a_finish_adds_only_what_the_pieces_lacked(make_frame: Any) -> None:
    events = read(make_frame, start("m"), delta("who"), finish("whole"), finish("whole"))
    assert "".join(event.text for event in events) == "whole"


def test_what_a_person_or_a_tool_says_is_not_the_answer(make_frame: Any) -> None:
    assert read(make_frame, start("h", role="human"), delta("hello")) == []
    assert read(make_frame, start("t", role="tool"), delta("42")) == []


def test_a_subagents_words_and_tools_are_left_out(make_frame: Any) -> None:
    assert read(make_frame, start("m"), delta("inner"), namespace=("tools:1", "model:2")) == []
    inner = {"event": "tool-started", "tool_call_id": "c", "tool_name": "x", "input": {}}
    assert read(make_frame, inner, method="tools", namespace=("tools:1", "tools:2")) == []


def test_words_in_a_segment_of_the_root_graph_are_the_answer(make_frame: Any) -> None:
    assert [event.text for event in read(make_frame, start("m"), delta("yes"), namespace=("model:1",))] == ["yes"]


def test_tools_start_finish_and_fail(make_frame: Any) -> None:
    events = read(
        make_frame,
        {"event": "tool-started", "tool_call_id": "c", "tool_name": "add", "input": {"a": 1}},
        {"event": "tool-finished", "tool_call_id": "c", "output": "2"},
        {"event": "tool-error", "tool_call_id": "d", "message": "no"},
        method="tools",
        namespace=("tools:1",),
    )
    assert events == [
        ToolStarted(call_id="c", name="add", input={"a": 1}),
        ToolFinished(call_id="c", output="2"),
        ToolFailed(call_id="d", message="no"),
    ]


@pytest.mark.parametrize("key", ["payload", "value"])
def test_a_question_is_read_in_both_spellings(make_frame: Any, key: str) -> None:
    events = read(make_frame, {"interrupt_id": "i", "kind": "input", key: {"x": 1}}, method="input.requested")
    assert events == [Question(interrupt_id="i", kind="input", payload={"x": 1})]


def test_a_question_of_no_kind_is_an_approval(make_frame: Any) -> None:
    assert read(make_frame, {"interrupt_id": "i", "payload": {}}, method="input.requested")[0].kind == "approval"


def test_a_message_that_broke_off_is_said_with_the_reason(make_frame: Any) -> None:
    cut = {"event": "error", "message": "the server was restarted", "code": "aborted", "run_id": "x"}
    assert read(make_frame, start("m"), delta("half"), {**cut, "run_id": start("m")["run_id"]})[-1] == MessageCut(
        message_id="m", reason="the server was restarted"
    )


def test_a_gap_is_said(make_frame: Any) -> None:
    data = {"name": "pizzabot.gap", "payload": {"requested": 3, "earliest": 9, "latest": 20}}
    assert read(make_frame, data, method="custom") == [Gap(requested=3, earliest=9)]


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        ({"event": "completed"}, RunOutcome.COMPLETED),
        ({"event": "completed", "code": "CANCELLED"}, RunOutcome.CANCELLED),
        ({"event": "interrupted", "code": "SUPERSEDED"}, RunOutcome.SUPERSEDED),
        ({"event": "interrupted"}, RunOutcome.INTERRUPTED),
    ],
)
def test_the_root_terminal_frame_says_how_the_run_ended(make_frame: Any, data: Any, outcome: RunOutcome) -> None:
    assert read(make_frame, data, method="lifecycle") == [RunEnded(run_id="r", outcome=outcome)]


def test_the_end_of_a_part_is_not_the_end_of_the_run(make_frame: Any) -> None:
    frame = make_frame("lifecycle", {"event": "completed"}, namespace=("tools:1",))
    assert not is_last(frame)
    assert list(EventReader("r").read(frame)) == []
    assert not is_last(make_frame("lifecycle", {"event": "running"}))


@pytest.mark.parametrize(
    ("event_id", "run"),
    [("synth:abc:7", "abc"), ("synth:thread:7", None), ("synth:gap:0-3", None), ("other", None), (None, None)],
)
def test_a_frames_run_is_in_its_event_id(event_id: Any, run: str | None) -> None:
    assert run_of({"event_id": event_id}) == run


@pytest.mark.parametrize(
    "frame", [{}, {"method": "messages"}, {"method": "messages", "params": {"data": 3}}, {"params": []}]
)
def test_a_frame_without_the_expected_parts_is_no_event(frame: Any) -> None:
    assert list(EventReader("r").read(frame)) == []


def test_what_the_reader_remembers_is_bounded(make_frame: Any) -> None:
    reader = EventReader("r")
    for number in range(MAX_OPEN_BLOCKS + 100):
        list(reader.read(make_frame("messages", start(f"m{number}", run=str(number)))))
        list(reader.read(make_frame("messages", delta("x", run=str(number)))))
    assert len(reader._messages) <= MAX_OPEN_BLOCKS
    assert len(reader._said) <= MAX_OPEN_BLOCKS
