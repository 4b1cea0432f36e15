"""The shapes of LangGraph's v3 events that the normaliser relies on: a package that changes one fails here first."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from .deep_graph import DeepGraph


def events(said: str, method: str) -> list[Any]:
    """`params` of every event of one method in a turn that begins with `said`."""
    return [event["params"] for event in asyncio.run(DeepGraph().events(said)) if event["method"] == method]


def test_an_event_has_a_method_a_namespace_a_timestamp_and_data() -> None:
    for event in asyncio.run(DeepGraph().events("hello")):
        assert event["type"] == "event"
        assert isinstance(event["params"]["namespace"], list)
        assert isinstance(event["params"]["timestamp"], int)
        assert "data" in event["params"]


def test_no_other_methods_are_sent_than_the_normaliser_knows() -> None:
    for said in ("hello", "add", "deploy", "delegate", "notice"):
        methods = {event["method"] for event in asyncio.run(DeepGraph().events(said))}
        assert methods <= {"values", "messages", "tools", "lifecycle", "checkpoints", "custom"}


def test_a_model_call_is_told_as_pairs_of_event_and_metadata_at_the_graphs_namespace() -> None:
    stream = events("hello", "messages")
    names = [params["data"][0]["event"] for params in stream]
    assert names[:2] == ["message-start", "content-block-start"]
    assert set(names[2:-2]) == {"content-block-delta"}
    assert names[-2:] == ["content-block-finish", "message-finish"]
    assert {tuple(params["namespace"]) for params in stream} == {()}
    start, metadata = stream[0]["data"]
    assert start["role"] == "ai"
    assert start["id"].startswith("lc_run--")
    assert isinstance(metadata["run_id"], str)
    assert metadata["langgraph_node"] == "model"
    assert metadata["langgraph_checkpoint_ns"].startswith("model:")
    assert "|" not in metadata["langgraph_checkpoint_ns"]
    delta = stream[2]["data"][0]
    assert delta == {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "You "}}


def test_tool_arguments_are_streamed_as_tool_call_deltas() -> None:
    payloads = [params["data"][0] for params in events("add", "messages")]
    started = next(payload for payload in payloads if payload.get("content", {}).get("type") == "tool_call_chunk")
    assert started["event"] == "content-block-start"
    assert started["content"]["id"] == "call-add"
    deltas = [p["delta"] for p in payloads if p["event"] == "content-block-delta" and p["index"] == started["index"]]
    assert {delta["type"] for delta in deltas} == {"tool-call-delta"}
    finished = next(payload for payload in payloads if payload.get("content", {}).get("type") == "tool_call")
    assert finished["content"]["args"] == {"a": 20, "b": 22}


def test_a_ready_made_answer_of_a_node_comes_as_a_message_object() -> None:
    whole = [params["data"] for params in events("notice", "messages") if isinstance(params["data"][0], BaseMessage)]
    ((message, metadata),) = whole
    assert isinstance(message, AIMessage)
    assert message.id
    assert metadata["langgraph_node"] == "Notice.after_agent"


def test_tools_are_told_at_the_namespace_of_the_graph_not_of_the_task() -> None:
    started, finished = events("add", "tools")
    assert started["data"] == {
        "event": "tool-started",
        "tool_call_id": "call-add",
        "tool_name": "add",
        "input": {"a": 20, "b": 22},
    }
    assert started["namespace"] == finished["namespace"] == []
    assert finished["data"]["event"] == "tool-finished"
    assert isinstance(finished["data"]["output"], ToolMessage)


def test_a_subagents_result_is_a_command() -> None:
    finished = [params["data"] for params in events("delegate", "tools") if params["data"]["event"] == "tool-finished"]
    assert isinstance(finished[-1]["output"], Command)


def test_a_subagents_lifecycle_is_told_at_the_root_and_names_its_subject() -> None:
    started, completed = events("delegate", "lifecycle")
    assert started["namespace"] == []
    (segment,) = started["data"]["namespace"]
    assert segment.startswith("tools:")
    assert started["data"]["event"] == "started"
    assert started["data"]["graph_name"] == "worker"
    assert started["data"]["cause"] == {"type": "toolCall", "tool_call_id": "call-task"}
    assert completed["data"]["event"] == "completed"


def test_a_subagents_tokens_name_both_graphs_in_their_checkpoint_namespace() -> None:
    inner = [params for params in events("delegate", "messages") if params["namespace"]]
    assert inner
    for params in inner:
        outer, node = params["data"][1]["langgraph_checkpoint_ns"].split("|")
        assert params["namespace"] == [outer]
        assert node.startswith("model:")


def test_a_subagents_messages_name_it_in_their_metadata_and_the_orchestrators_name_nobody() -> None:
    said = [
        (len(params["namespace"]), params["data"][1].get("lc_agent_name")) for params in events("delegate", "messages")
    ]
    assert set(said) == {(0, None), (1, "worker")}


def test_a_checkpoint_follows_its_values_and_repeats_the_whole_state() -> None:
    told = asyncio.run(DeepGraph().events("hello"))
    methods = [event["method"] for event in told if event["method"] in ("values", "checkpoints")]
    assert all(methods[index + 1] == "checkpoints" for index, name in enumerate(methods) if name == "values")
    checkpoint = [event for event in told if event["method"] == "checkpoints"][-1]["params"]["data"]
    assert set(checkpoint) >= {"config", "parent_config", "values", "metadata", "next"}
    assert checkpoint["config"]["configurable"]["checkpoint_id"]
    assert checkpoint["metadata"]["source"] == "loop"


def test_values_hold_live_messages_and_say_what_interrupts() -> None:
    first = events("hello", "values")[0]
    assert first["interrupts"] == ()
    assert isinstance(first["data"]["messages"][0], HumanMessage)
    assert first["data"]["messages"][0].id == "u1"
    last = events("deploy", "values")[-1]
    (pending,) = last["interrupts"]
    assert pending.id
    assert pending.value["action_requests"][0]["name"] == "deploy"
    assert pending.value["review_configs"][0]["action_name"] == "deploy"


def test_an_interrupt_of_a_subagent_surfaces_in_its_namespace_first_and_again_at_the_root() -> None:
    levels = [params for params in events("delegate a question", "values") if params["interrupts"]]
    assert [len(params["namespace"]) for params in levels] == [1, 0]
    assert levels[0]["interrupts"][0].id == levels[1]["interrupts"][0].id


def test_opening_a_stream_warns_of_nothing_and_leaves_the_filters_alone() -> None:
    before = list(warnings.filters)
    asyncio.run(DeepGraph().events("hello"))
    assert list(warnings.filters) == before
