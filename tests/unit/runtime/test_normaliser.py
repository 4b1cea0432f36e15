"""The rules of the normaliser that real turns show seldom or not at all. (Real turns: tests/contract/runtime.)"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from pizzabot_builtin_plugins.deepagents_runtime.normaliser import STEPWISE_MESSAGES, Normaliser
from pizzabot_builtin_plugins.deepagents_runtime.open_messages import checkpoint_namespace, js_namespace, well_formed
from pizzabot_builtin_plugins.deepagents_runtime.plain import TOLD_RESULT
from pizzabot_hookspecs.wire import Frame

WHERE = {"run_id": "llm-1", "langgraph_node": "model", "langgraph_checkpoint_ns": "model:1"}


def event(
    method: str, data: Any, *, at: int = 1000, namespace: tuple[str, ...] = (), interrupts: tuple[Any, ...] = ()
) -> dict[str, Any]:
    params = {"namespace": list(namespace), "timestamp": at, "data": data, "interrupts": interrupts}
    return {"type": "event", "method": method, "params": params}


def words(payload: Mapping[str, Any], at: int = 1000, **where: Any) -> dict[str, Any]:
    return event("messages", (payload, {**WHERE, **where}), at=at)


def checkpoint(checkpoint_id: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    config = {"configurable": {"checkpoint_id": checkpoint_id}}
    parent_config = {"configurable": {"checkpoint_id": parent}} if parent else None
    data = {"config": config, "parent_config": parent_config, "metadata": {"step": 1, "source": "loop"}}
    return event("checkpoints", data, **more)


def feed(normaliser: Normaliser, *events: Mapping[str, Any]) -> list[Frame]:
    return [frame for item in events for frame in normaliser.feed(item)]


def started(normaliser: Normaliser, message_id: str = "m1", **where: Any) -> None:
    feed(normaliser, words({"event": "message-start", "role": "ai", "id": message_id}, **where))


def test_timestamps_never_decrease() -> None:
    normaliser = Normaliser()
    frames = feed(normaliser, event("custom", {}, at=50), event("custom", {}, at=40), event("custom", {}, at=60))
    assert [frame.timestamp for frame in frames] == [50, 50, 60]


def test_block_indices_are_made_dense_per_message_and_begin_anew_with_the_next() -> None:
    normaliser = Normaliser()
    for message_id in ("m1", "m2"):
        started(normaliser, message_id)
        frames = feed(
            normaliser,
            words({"event": "content-block-start", "index": 3, "content": {"type": "text", "text": ""}}),
            words({"event": "content-block-delta", "index": 3, "delta": {"type": "text-delta", "text": "a"}}),
            words({"event": "content-block-start", "index": 7, "content": {"type": "tool_call_chunk"}}),
            words({"event": "content-block-delta", "index": 7, "delta": {"type": "tool-call-delta", "args": "{"}}),
            words({"event": "content-block-finish", "index": 3, "content": {"type": "text", "text": "a"}}),
            words({"event": "message-finish"}),
        )
        assert [frame.data.get("index") for frame in frames] == [0, 0, 1, 1, 0, None]


def test_two_calls_of_one_node_are_kept_apart_by_their_run_id() -> None:
    normaliser = Normaliser()
    started(normaliser, "m1", run_id="llm-1")
    started(normaliser, "m2", run_id="llm-2")
    delta = {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "x"}}
    frames = feed(normaliser, words(delta, run_id="llm-2"), words(delta, run_id="llm-1"))
    assert [frame.data["run_id"] for frame in frames] == ["llm-2", "llm-1"]


def test_reasoning_and_rarer_deltas_are_told_with_their_run_id() -> None:
    normaliser = Normaliser()
    started(normaliser)
    frames = feed(
        normaliser,
        words({"event": "content-block-delta", "index": 0, "delta": {"type": "reasoning-delta", "reasoning": "hm"}}),
        words({"event": "content-block-delta", "index": 1, "delta": {"type": "data-delta", "data": b"12"}}),
    )
    assert frames[0].data["delta"] == {"type": "reasoning-delta", "reasoning": "hm"}
    assert frames[1].data["delta"] == {"type": "data-delta", "data": {"bytes": 2}}
    assert {frame.data["run_id"] for frame in frames} == {"llm-1"}


def test_a_whole_message_is_told_as_a_stream_of_one_piece_for_each_block_its_calls_too() -> None:
    call = {"name": "look", "args": {"what": "ö"}, "id": "c1"}
    (*frames,) = feed(Normaliser(), words(AIMessage(content="hi", id="m1", tool_calls=[call])))  # type: ignore[arg-type]
    assert [frame.data["event"].removeprefix("content-block-") for frame in frames] == [
        "message-start", "start", "delta", "finish", "start", "delta", "finish", "message-finish"
    ]  # fmt: skip
    assert frames[4].data["content"] == {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": ""}
    assert frames[5].data["content"] == {"type": "tool_call_chunk", "args": '{"what": "ö"}'}
    assert frames[6].data["content"]["args"] == {"what": "ö"}


def test_results_of_tools_on_the_message_channel_are_left_out() -> None:
    normaliser = Normaliser()
    frames = feed(
        normaliser,
        words({"event": "message-start", "role": "tool", "id": "t1"}),
        words({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "x"}}),
        words({"event": "message-finish"}),
    )
    assert frames == []


def test_the_text_of_a_message_is_known_when_it_is_cut_off() -> None:
    normaliser = Normaliser()
    started(normaliser)
    for text in ("Hel", "lo \ud83d"):
        feed(
            normaliser,
            words({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": text}}),
        )
    (message,) = normaliser.said.values()
    assert (message.id, "".join(message.text), message.at_root) == ("m1", "Hello \ufffd", True)


def test_the_first_state_waits_for_its_checkpoint_only() -> None:
    normaliser = Normaliser()
    assert feed(normaliser, event("values", {"messages": []})) == []
    frames = feed(normaliser, event("custom", {"a": 1}))
    assert [frame.method for frame in frames] == ["values", "custom"]


def test_a_later_state_is_held_until_the_end_and_only_the_newest_is_told() -> None:
    normaliser = Normaliser()
    feed(normaliser, event("values", {"messages": []}), checkpoint("c1"))
    later = [(event("values", {"step": n}), checkpoint(f"c{n}", f"c{n - 1}")) for n in (2, 3)]
    frames = feed(normaliser, *(item for pair in later for item in pair))
    assert [frame.data for frame in frames] == [
        {"id": "c2", "step": 1, "source": "loop", "parent_id": "c1"},
        {"id": "c3", "step": 1, "source": "loop", "parent_id": "c2"},
    ]
    (last,) = normaliser.close()
    assert last.data == {"step": 3, "messages": []}
    assert normaliser.close() == []


def test_states_of_subagents_are_closed_before_the_roots() -> None:
    normaliser = Normaliser()
    feed(normaliser, event("values", {}), checkpoint("c1"), event("values", {"root": 2}), checkpoint("c2"))
    feed(normaliser, event("values", {}, namespace=("tools:1",)), checkpoint("s1", namespace=("tools:1",)))
    feed(normaliser, event("values", {"inner": 2}, namespace=("tools:1",)), checkpoint("s2", namespace=("tools:1",)))
    assert [frame.namespace for frame in normaliser.close()] == [("tools:1",), ()]


def asked_twice(normaliser: Normaliser) -> list[Frame]:
    pending = SimpleNamespace(id="i1", value={"question": "?"})
    return feed(
        normaliser,
        event("values", {"a": 1}, namespace=("tools:1",), interrupts=(pending,)),
        event("values", {"a": 1}, interrupts=(pending,)),
    )


def test_an_interrupt_is_asked_once_where_it_is_deepest_and_last_of_all() -> None:
    normaliser = Normaliser()
    frames = [*asked_twice(normaliser), *normaliser.close()]
    assert [(frame.method, frame.namespace) for frame in frames] == [
        ("values", ("tools:1",)),
        ("values", ()),
        ("input.requested", ("tools:1",)),
    ]
    assert frames[-1].data["kind"] == "input"


def test_a_turn_that_failed_or_was_stopped_asks_nothing() -> None:
    failed, stopped = Normaliser(), Normaliser()
    asked_twice(failed)
    asked_twice(stopped)
    assert [frame.method for frame in failed.close(failed=True)] == ["values"]
    assert [frame.method for frame in stopped.settled({"id": "c9"}, {})] == ["checkpoints", "values"]


def test_the_result_of_a_call_that_did_not_run_closes_it_where_it_was_made() -> None:
    normaliser = Normaliser({"c1": ("tools:1",)})
    refused = ToolMessage("no", tool_call_id="c1", name="send", status="error")
    answered = ToolMessage("yes", tool_call_id="c2", name="send")
    first, second = feed(
        normaliser, event("custom", {TOLD_RESULT: refused}), event("custom", {TOLD_RESULT: answered}, namespace=("x",))
    )
    assert (first.method, first.namespace) == ("tools", ("tools:1",))
    assert first.data == {"event": "tool-error", "tool_call_id": "c1", "tool_name": "send", "message": "no"}
    assert (second.data["event"], second.namespace) == ("tool-finished", ("x",))
    assert second.data["output"]["content"] == "yes"


def test_a_settled_end_replaces_what_was_held_back() -> None:
    normaliser = Normaliser()
    feed(normaliser, event("values", {"old": True}, at=10**15))
    frames = normaliser.settled({"id": "c9"}, {"messages": []})
    assert [(frame.method, frame.data) for frame in frames] == [
        ("checkpoints", {"id": "c9"}),
        ("values", {"messages": []}),
    ]
    assert {frame.timestamp for frame in frames} == {10**15}
    assert normaliser.close() == []


def test_a_named_custom_event_keeps_its_name_and_any_other_becomes_a_payload() -> None:
    frames = feed(Normaliser(), event("custom", {"name": "n", "payload": 1}), event("custom", [1]))
    assert [frame.data for frame in frames] == [{"name": "n", "payload": 1}, {"payload": [1]}]


def test_the_roots_own_lifecycle_and_unknown_methods_are_left_to_the_host() -> None:
    assert feed(Normaliser(), event("lifecycle", {"event": "completed", "namespace": []}), event("debug", {})) == []


def test_a_tools_namespace_is_forgotten_once_it_has_finished() -> None:
    where = {"c1": ("tools:1",)}
    normaliser = Normaliser(where)
    frames = feed(
        normaliser,
        event("tools", {"event": "tool-started", "tool_call_id": "c1"}),
        event("tools", {"event": "tool-error", "tool_call_id": "c1", "message": "no"}),
        event("tools", {"event": "tool-started", "tool_call_id": "unknown"}, namespace=("tools:9",)),
    )
    assert [frame.namespace for frame in frames] == [("tools:1",), ("tools:1",), ("tools:9",)]
    assert where == {}


def test_the_model_node_has_its_javascript_name_in_namespaces() -> None:
    assert js_namespace("tools:a|model:b") == ("tools:a", "model_request:b")
    assert js_namespace("model_router:a") == ("model_router:a",)


def test_a_namespace_goes_back_to_the_checkpoints_it_names_however_clients_join_it() -> None:
    for stored in ("tools:a|model:b", "tools:a|tools:b", "model_router:a", ""):
        assert checkpoint_namespace(js_namespace(stored)) == stored
    assert checkpoint_namespace(("tools:a\0tools:b",)) == "tools:a|tools:b"
    assert checkpoint_namespace(("tools:a|model_request:b",)) == "tools:a|model:b"
    assert checkpoint_namespace(()) == ""


def test_a_state_of_which_nobody_knows_the_agent_names_nobody() -> None:
    normaliser = Normaliser()
    feed(normaliser, event("values", {"messages": [AIMessage("who?", id="a1")]}, namespace=("tools:1",)))
    (frame,) = normaliser.close()
    assert frame.data["messages"][0]["name"] is None


def test_well_formed_text_is_left_alone() -> None:
    text = "plain, Grüße, 比萨 🍕"
    assert well_formed(text) is text


def test_a_long_state_is_shown_at_its_turns_ends_only_and_a_short_one_with_every_step_that_adds_a_message() -> None:
    for length, expected in ((STEPWISE_MESSAGES - 1, [199, 200, 201]), (STEPWISE_MESSAGES + 5, [205, 207])):
        normaliser = Normaliser()
        shown = []
        for step in range(3):
            messages = [AIMessage(str(number), id=str(number)) for number in range(length + step)]
            shown += feed(normaliser, event("values", {"messages": messages}), checkpoint(f"c{step}"))
        shown += normaliser.close()
        states = [frame for frame in shown if frame.method == "values"]
        assert [len(frame.data["messages"]) for frame in states] == expected


def test_a_state_that_was_shown_is_not_shown_again_where_an_interrupt_repeats_it() -> None:
    normaliser = Normaliser()
    feed(normaliser, event("values", {"messages": [AIMessage("hi", id="1")]}), checkpoint("c1"))
    repeated = event("values", {"messages": [AIMessage("hi", id="1")]}, interrupts=(SimpleNamespace(id="i", value={}),))
    feed(normaliser, repeated)
    assert [frame.method for frame in normaliser.close()] == ["input.requested"]
