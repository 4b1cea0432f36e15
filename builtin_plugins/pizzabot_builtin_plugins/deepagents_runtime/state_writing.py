# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Writing a thread's state for a client: its values checked and made LangChain's own, then one update of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from langgraph.errors import InvalidUpdateError
from langgraph.types import StateUpdate
from pydantic import TypeAdapter, ValidationError

from pizzabot_builtin_plugins.deepagents_runtime.message_reading import read_messages
from pizzabot_builtin_plugins.deepagents_runtime.plain import plain
from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config
from pizzabot_hookspecs import InvalidRequest, NotFound

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph
    from pizzabot_hookspecs.wire import JsonValue

FAULTS_TOLD = 20
"""Fields that an error names; a client that got every one of a thousand messages wrong needs no more."""


async def write_state(
    graph: Graph,
    saver: BaseCheckpointSaver[Any],
    thread_id: str,
    values: Mapping[str, JsonValue],
    *,
    as_node: str | None,
    checkpoint_id: str | None,
) -> str:
    """Write `values` as if `as_node` had returned them (None: the node that ran last); the new checkpoint's id.

    Raises `NotFound` `no_such_checkpoint`, `InvalidRequest` `invalid_values` with the fields, `no_such_node`.
    """
    if as_node is not None and as_node not in graph.nodes:
        raise InvalidRequest("no_such_node", f"the graph has no node {as_node!r}; it has {_nodes(graph)}")
    written = checked(graph, values)
    config = thread_config(thread_id, checkpoint_id)
    if checkpoint_id is not None and await saver.aget_tuple(config) is None:
        raise NotFound("no_such_checkpoint", f"thread {thread_id!r} has no checkpoint {checkpoint_id!r}")
    try:
        updated = await graph.abulk_update_state(config, [[StateUpdate(written, as_node)]])
    except InvalidUpdateError as error:
        detail = f"which node wrote thread {thread_id!r} last is not clear; say `as_node`, one of {_nodes(graph)}"
        raise InvalidRequest("no_such_node", detail) from error
    return str(updated["configurable"]["checkpoint_id"])


def checked(graph: Graph, values: Mapping[str, JsonValue]) -> dict[str, Any]:
    """`values` as the graph's channels take them. Raises `InvalidRequest` `invalid_values`, with the fields."""
    channels = get_type_hints(graph.builder.input_schema)
    written: dict[str, Any] = {}
    fields: dict[str, str] = {}
    for name, value in values.items():
        if name not in channels:
            fields[name] = f"there is no such channel; there are {', '.join(sorted(channels))}"
        elif name == "messages":
            written[name] = read_messages(value, fields)
        else:
            written[name] = _typed(name, value, channels[name], fields)
    if fields:
        first, fault = next(iter(fields.items()))
        told = dict(list(fields.items())[:FAULTS_TOLD])
        raise InvalidRequest("invalid_values", f"the values cannot be written, {first}: {fault}", fields=told)
    return written


def _typed(name: str, value: JsonValue, expected: Any, fields: dict[str, str]) -> Any:
    try:
        return TypeAdapter(expected).validate_python(plain(value))
    except ValidationError as error:
        fields.update({".".join((name, *map(str, fault["loc"]))): fault["msg"] for fault in error.errors()})
        return None


def _nodes(graph: Graph) -> str:
    return ", ".join(sorted(graph.nodes))
