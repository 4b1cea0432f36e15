"""What LangGraph's v3 events and deepagents' graphs are natively, row by row of design/wire.md §9.

A package that changes one of these fails here first. The message names the row, and so what in the normaliser
(`deepagents_runtime/normaliser.py`) or in the host rests on it.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from .upstream_graph import CONFIG, events, make_graph, opened

METHODS = {"values", "messages", "tools", "lifecycle", "checkpoints", "custom"}
TURNS = ("hello", "add", "add wrongly", "unknown", "custom", "deploy", "delegate", "delegate a question", "notice")


@contextmanager
def row(number: int, rests: str) -> Iterator[None]:
    """Says which row of wire.md §9 moved, what of ours rests on it, and with which packages."""
    try:
        yield
    except (AssertionError, LookupError, TypeError, ValueError, AttributeError) as error:
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("langgraph", "deepagents"))
        pytest.fail(f"wire.md §9 row {number} has moved ({versions}): {rests}. {type(error).__name__}: {error}")


def told(given: str) -> list[Any]:
    return asyncio.run(events(given))


def of(given: str, method: str) -> list[Any]:
    """`params` of every event of one method in a turn."""
    return [event["params"] for event in told(given) if event["method"] == method]


def test_row_1_the_root_has_no_lifecycle_of_its_own() -> None:
    with row(1, "the host writes the root's running and its end; upstream's would come twice"):
        for given in TURNS:
            assert [params for params in of(given, "lifecycle") if not params["data"].get("namespace")] == []


def test_row_2_events_are_numbered_by_run_from_one_and_have_no_id() -> None:
    graph = make_graph()

    async def scenario() -> list[list[Any]]:
        return [await events("hello", graph), await events("hello", graph)]

    with row(2, "the log counts and names events itself"):
        for turn in asyncio.run(scenario()):
            assert [event["seq"] for event in turn] == list(range(1, len(turn) + 1))
            for event in turn:
                assert set(event) == {"type", "seq", "method", "params"}
                assert event["type"] == "event"
                assert isinstance(event["params"]["namespace"], list)
                assert isinstance(event["params"]["timestamp"], int)
                assert "data" in event["params"]


def test_row_2_no_other_methods_come_than_the_normaliser_knows() -> None:
    with row(2, "what it does not know it drops"):
        for given in TURNS:
            assert {event["method"] for event in told(given)} <= METHODS


def test_row_3_a_model_call_is_pairs_of_event_and_metadata_at_the_graphs_namespace() -> None:
    with row(3, "namespace, node and run id of a message are read from its metadata"):
        stream = of("hello", "messages")
        assert [params["data"][0]["event"] for params in stream] == [
            "message-start",
            "content-block-start",
            *["content-block-delta"] * 3,
            "content-block-finish",
            "message-finish",
        ]
        assert {tuple(params["namespace"]) for params in stream} == {()}
        start, metadata = stream[0]["data"]
        assert (start["role"], start["id"][:8]) == ("ai", "lc_run--")
        assert len({params["data"][1]["run_id"] for params in stream}) == 1
        assert metadata["langgraph_node"] == "model"
        assert metadata["langgraph_checkpoint_ns"].startswith("model:")
        assert "|" not in metadata["langgraph_checkpoint_ns"]
        assert stream[2]["data"][0] == {
            "event": "content-block-delta",
            "index": 0,
            "delta": {"type": "text-delta", "text": "You "},
        }
        assert stream[5]["data"][0]["content"] == {"type": "text", "text": "You said hello"}


def test_row_3_a_message_start_has_the_id_of_the_message_in_the_state() -> None:
    with row(3, "clients put stream and snapshot together by this id"):
        turn = told("hello")
        ids = [event["params"]["data"][0]["id"] for event in turn if _starts_a_message(event)]
        assert ids == [message.id for message in _last_values(turn)["messages"] if message.type == "ai"]


def test_row_3_a_subagents_tokens_name_both_graphs_in_their_checkpoint_namespace() -> None:
    with row(3, "the subagent's messages get a segment for its task and one for its node"):
        inner = [params for params in of("delegate", "messages") if params["namespace"]]
        assert inner
        for params in inner:
            outer, node = params["data"][1]["langgraph_checkpoint_ns"].split("|")
            assert params["namespace"] == [outer]
            assert outer.startswith("tools:")
            assert node.startswith("model:")


def test_row_4_a_ready_made_answer_of_a_node_comes_as_a_message_object() -> None:
    with row(4, "it is expanded into the events of a streamed one"):
        whole = [params["data"] for params in of("notice", "messages") if isinstance(params["data"][0], BaseMessage)]
        ((message, metadata),) = whole
        assert isinstance(message, AIMessage)
        assert message.id
        assert metadata["langgraph_node"] == "Notice.after_agent"
        assert metadata["langgraph_checkpoint_ns"].startswith("Notice.after_agent:")


def test_row_5_tools_are_told_at_the_namespace_of_the_graph_not_of_the_task() -> None:
    with row(5, "the task's own segment is put in from the index of tasks"):
        started, finished = of("add", "tools")
        assert started["data"] == {
            "event": "tool-started",
            "tool_call_id": "call-add",
            "tool_name": "add",
            "input": {"a": 20, "b": 22},
        }
        assert started["namespace"] == finished["namespace"] == []
        inner = [params for params in of("delegate", "tools") if params["data"].get("tool_call_id") == "call-sub"]
        assert [len(params["namespace"]) for params in inner] == [1, 1]


def test_row_5_a_task_tells_which_tool_call_it_is_for() -> None:
    tasks: list[Any] = []
    asyncio.run(events("delegate", tasks=tasks))
    with row(5, "`by_call` maps a tool call to its task from the task's input"):
        starts = [params for params in tasks if params["data"]["name"] == "tools" and "input" in params["data"]]
        calls = {_only_call(params["data"]["input"])["id"]: params for params in starts}
        assert set(calls) == {"call-task", "call-sub"}
        outer, inner = calls["call-task"], calls["call-sub"]
        assert outer["namespace"] == []
        assert inner["namespace"] == [f"tools:{outer['data']['id']}"]
        assert _only_call(outer["data"]["input"])["type"] == "tool_call"


def test_row_6_results_are_message_and_command_objects() -> None:
    with row(6, "they are turned into plain JSON, a command with `lg_name`"):
        finished = [params["data"] for params in of("add", "tools")][-1]
        assert set(finished) == {"event", "tool_call_id", "output"}
        assert finished["event"] == "tool-finished"
        assert isinstance(finished["output"], ToolMessage)
        assert (finished["output"].content, finished["output"].tool_call_id) == ("42", "call-add")
        delegated = [data for p in of("delegate", "tools") if (data := p["data"])["event"] == "tool-finished"][-1]
        assert isinstance(delegated["output"], Command)
        assert isinstance(delegated["output"].update["messages"][-1], ToolMessage)


def test_row_6_arguments_that_do_not_fit_are_an_error_of_the_call_and_the_turn_goes_on() -> None:
    with row(6, "the call's end is told as `tool-error`"):
        started, failed = [params["data"] for params in of("add wrongly", "tools")]
        assert (started["event"], started["input"]) == ("tool-started", {"a": "twenty"})
        assert failed["event"] == "tool-error"
        assert failed["tool_call_id"] == "call-wrong"
        assert "validation error" in failed["message"]
        last = _last_values(told("add wrongly"))["messages"]
        assert [message.type for message in last] == ["human", "ai", "tool", "ai"]
        assert last[2].status == "error"


def test_row_6_a_tool_that_there_is_not_has_no_event_and_an_error_in_the_state() -> None:
    with row(6, "the runtime tells of it itself"):
        assert of("unknown", "tools") == []
        last = _last_values(told("unknown"))["messages"]
        assert [message.type for message in last] == ["human", "ai", "tool", "ai"]
        assert (last[2].status, last[2].tool_call_id) == ("error", "call-unknown")


def test_row_7_a_subagents_lifecycle_is_told_at_the_root_and_names_its_subject() -> None:
    with row(7, "the subject becomes the frame's namespace"):
        started, completed = of("delegate", "lifecycle")
        assert started["namespace"] == completed["namespace"] == []
        (segment,) = started["data"]["namespace"]
        assert segment.startswith("tools:")
        assert completed["data"]["namespace"] == [segment]
        assert (started["data"]["event"], completed["data"]["event"]) == ("started", "completed")
        assert started["data"]["graph_name"] == "worker"
        assert started["data"]["cause"] == {"type": "toolCall", "tool_call_id": "call-task"}


def test_row_8_a_checkpoint_follows_its_values_and_repeats_the_whole_state() -> None:
    with row(8, "values are held back until their checkpoint has gone out"):
        turn = told("delegate")
        states = [event for event in turn if event["method"] in ("values", "checkpoints")]
        for index, event in enumerate(states):
            if event["method"] == "values":
                after = states[index + 1]
                assert (after["method"], after["params"]["namespace"]) == ("checkpoints", event["params"]["namespace"])
        checkpoint = [event for event in turn if event["method"] == "checkpoints"][-1]["params"]["data"]
        assert set(checkpoint) >= {"config", "parent_config", "values", "metadata", "next"}
        assert checkpoint["config"]["configurable"]["checkpoint_id"]
        assert (checkpoint["metadata"]["source"], type(checkpoint["metadata"]["step"])) == ("loop", int)
        assert checkpoint["parent_config"]["configurable"]["checkpoint_id"]


def test_row_9_values_hold_live_messages_and_say_what_interrupts() -> None:
    with row(9, "interrupts are read from `params`"):
        first = of("hello", "values")[0]
        assert set(first) == {"namespace", "timestamp", "data", "interrupts"}
        assert first["interrupts"] == ()
        assert isinstance(first["data"]["messages"][0], HumanMessage)
        assert first["data"]["messages"][0].id == "u1"
        last = of("deploy", "values")[-1]
        (pending,) = last["interrupts"]
        assert isinstance(pending.id, str)
        assert pending.value["action_requests"][0]["name"] == "deploy"
        assert pending.value["action_requests"][0]["args"] == {"env": "prod"}
        assert pending.value["review_configs"][0]["action_name"] == "deploy"
        assert set(pending.value["review_configs"][0]["allowed_decisions"]) >= {"approve", "edit", "reject"}


def test_row_9_an_interrupt_of_a_subagent_surfaces_in_its_namespace_first_and_again_at_the_root() -> None:
    with row(9, "the first one's namespace is the one it belongs to"):
        levels = [params for params in of("delegate a question", "values") if params["interrupts"]]
        assert [len(params["namespace"]) for params in levels] == [1, 0]
        assert levels[0]["interrupts"][0].id == levels[1]["interrupts"][0].id
        assert levels[0]["interrupts"][0].value == {"question": "colour?"}


def test_row_9_a_resumed_turn_starts_the_interrupted_call_again_with_its_id() -> None:
    async def scenario() -> list[Any]:
        graph = make_graph()
        await events("delegate a question", graph)
        state = await graph.aget_state(CONFIG)
        return await events(Command(resume={state.interrupts[0].id: "red"}), graph)

    with row(9, "clients update a call that starts again"):
        resumed = [event["params"]["data"] for event in asyncio.run(scenario()) if event["method"] == "tools"]
        assert [(data["event"], data["tool_call_id"]) for data in resumed] == [
            ("tool-started", "call-task"),
            ("tool-started", "call-sub-ask"),
            ("tool-finished", "call-sub-ask"),
            ("tool-finished", "call-task"),
        ]


def test_row_10_an_interrupted_run_just_ends() -> None:
    with row(10, "the host tells the root's end"):
        for given in ("deploy", "delegate a question"):
            assert told(given)[-1]["method"] in ("checkpoints", "values", "lifecycle")


def test_row_10_a_failed_run_raises_out_of_its_iterator() -> None:
    async def scenario() -> list[str]:
        run, came = await opened(make_graph(), "fail"), []
        try:
            async for event in run:
                came.append(event["method"])  # noqa: PERF401 - kept when the iteration breaks
        except RuntimeError as error:
            came.append(str(error))
        return came

    with row(10, "the host tells the root's end and its cause"):
        came = asyncio.run(scenario())
        assert "messages" in came
        assert came[-1] == "the model is broken"


def test_row_10_an_aborted_run_ends_quietly_and_leaves_its_message_open() -> None:
    async def scenario() -> list[Any]:
        run, came = await opened(make_graph(), "hello"), []
        async for event in run:
            came.append(event)
            if event["method"] == "messages" and event["params"]["data"][0]["event"] == "content-block-delta":
                await run.abort()
        return came

    with row(10, "the host settles messages that were cut off"):
        names = [
            event["params"]["data"][0]["event"] for event in asyncio.run(scenario()) if event["method"] == "messages"
        ]
        assert "message-start" in names
        assert "message-finish" not in names


def test_row_11_tool_arguments_are_streamed_as_tool_call_deltas() -> None:
    with row(11, "they are rewritten into the form that every SDK accepts"):
        payloads = [params["data"][0] for params in of("add", "messages")]
        started = next(payload for payload in payloads if payload.get("content", {}).get("type") == "tool_call_chunk")
        assert started["event"] == "content-block-start"
        assert (started["content"]["id"], started["content"]["name"]) == ("call-add", "add")
        pieces = [
            p["delta"] for p in payloads if p["event"] == "content-block-delta" and p["index"] == started["index"]
        ]
        assert {piece["type"] for piece in pieces} == {"tool-call-delta"}
        assert all(isinstance(piece["args"], str) for piece in pieces)
        finished = next(payload for payload in payloads if payload.get("content", {}).get("type") == "tool_call")
        assert finished["event"] == "content-block-finish"
        assert finished["content"]["args"] == {"a": 20, "b": 22}


def test_row_12_tasks_are_kept_back_and_custom_writes_come_as_they_were_written() -> None:
    with row(12, "`tasks` is not sent; `custom` is wrapped unless it has a name and a payload"):
        assert "tasks" not in {event["method"] for event in told("delegate")}
        (written,) = of("custom", "custom")
        assert written["data"] == {"said": "half done"}
        assert written["namespace"] == []


def test_opening_a_stream_warns_of_the_beta_and_of_nothing_else() -> None:
    before = list(warnings.filters)
    told("hello")
    assert list(warnings.filters) == before


def _starts_a_message(event: Any) -> bool:
    return bool(event["method"] == "messages" and event["params"]["data"][0]["event"] == "message-start")


def _last_values(turn: list[Any]) -> Any:
    return [
        event["params"]["data"] for event in turn if event["method"] == "values" and not event["params"]["namespace"]
    ][-1]


def _only_call(task_input: Any) -> Any:
    if isinstance(task_input, dict):
        return task_input["tool_call"]
    (call,) = task_input
    return call
