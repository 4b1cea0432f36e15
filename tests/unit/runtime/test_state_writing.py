"""What the graph refuses of a state that a client writes, beyond the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from pizzabot_builtin_plugins.deepagents_runtime.state_writing import FAULTS_TOLD, checked, write_state
from pizzabot_builtin_plugins.deepagents_runtime.warming import build_reader
from pizzabot_hookspecs import InvalidRequest


class State(TypedDict, total=False):
    left: int
    right: int


def forked_graph() -> Any:
    """Two nodes of one step: neither is the last."""
    builder = StateGraph(State)
    builder.add_node("to_the_left", lambda _state: {"left": 1})
    builder.add_node("to_the_right", lambda _state: {"right": 1})
    for node in ("to_the_left", "to_the_right"):
        builder.add_edge(START, node)
        builder.add_edge(node, END)
    return builder.compile(checkpointer=InMemorySaver())


def refused(writing: Coroutine[Any, Any, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        asyncio.run(writing)
    return caught.value


def test_a_write_that_does_not_say_which_of_two_nodes_it_is_is_refused() -> None:
    graph = forked_graph()
    config: Any = {"configurable": {"thread_id": "t"}}

    async def write(as_node: str | None) -> str:
        await graph.ainvoke({}, config)
        return await write_state(graph, graph.checkpointer, "t", {"left": 2}, as_node=as_node, checkpoint_id=None)

    error = refused(write(None))
    assert error.code == "no_such_node"
    assert "to_the_left, to_the_right" in error.detail
    written = asyncio.run(write("to_the_left"))
    assert asyncio.run(graph.aget_state({"configurable": {"thread_id": "t", "checkpoint_id": written}})).values == {
        "left": 2,
        "right": 1,
    }


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"files": 3}, "files"),
        ({"jump_to": "end"}, "jump_to"),
        ({"_summarization_session_id": "x"}, "_summarization_session_id"),
        ({"__pregel_tasks": []}, "__pregel_tasks"),
    ],
)
def test_a_channel_of_another_type_or_of_a_middleware_is_refused_by_its_name(
    values: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        checked(build_reader(InMemorySaver()), values)
    assert caught.value.code == "invalid_values"
    assert list(caught.value.fields) == [field]


def test_of_many_faults_the_first_ones_are_told() -> None:
    with pytest.raises(InvalidRequest) as caught:
        checked(build_reader(InMemorySaver()), {"messages": [None] * 1000})
    assert len(caught.value.fields) == FAULTS_TOLD
