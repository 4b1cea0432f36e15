# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""LangGraph's v3 events as frames of the wire (design/wire.md §9, whose rows are named where they are done).

The host adds the root's lifecycle, numbers and ids (rows 1, 2, 10) and settles messages that were cut off. `tasks` and
`updates` are not asked for (row 12). Full state goes out as a graph begins, with each step that adds a message while
there are few, and at the end: clients take a message's place in the history from the checkpoint before it. What a turn
asks the person for comes last of all: it cannot be answered before the turn has ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models._compat_bridge import message_to_events
from langchain_core.messages import BaseMessage, ToolMessage

from pizzabot_builtin_plugins.deepagents_runtime.dispatched import DispatchedPlaces
from pizzabot_builtin_plugins.deepagents_runtime.interrupts import kind_of, shown
from pizzabot_builtin_plugins.deepagents_runtime.open_messages import OpenMessage, js_namespace
from pizzabot_builtin_plugins.deepagents_runtime.plain import (
    AGENT_NAME,
    DISPATCHED,
    ORCHESTRATOR,
    PRODUCT_PREFIX,
    SHORTENED,
    TOLD_RESULT,
    Dispatched,
    Shortened,
    plain,
    public_values,
)
from pizzabot_hookspecs.wire import Frame, FrameMethod, Namespace

STEPWISE_MESSAGES = 200
"""Messages of a state up to which it is shown after each step that added one; a longer one at its turn's ends only."""
ENDINGS = frozenset({"completed", "failed", "interrupted", "drained"})
"""Events of a child's lifecycle after which nothing of it follows."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State that a superstep left behind and that nobody was shown yet."""

    values: Mapping[str, Any]
    timestamp: int


class Normaliser:
    """One per turn. `feed` every event, then `close`. `tool_namespaces` maps a tool call to its task's namespace,
    `redact` is what errors of tools go through.

    `said` is what the turn has streamed so far, by message id: what a stop must keep, whether or not LangGraph has
    stored it yet. As many as the turn makes model calls.
    """

    def __init__(
        self, tool_namespaces: dict[str, Namespace] | None = None, *, redact: Callable[[str], str] = str
    ) -> None:
        self._redact = redact
        self.tool_namespaces = tool_namespaces if tool_namespaces is not None else {}
        self.said: dict[str, OpenMessage] = {}
        self._open: dict[str, OpenMessage] = {}
        self._snapshots: dict[Namespace, Snapshot] = {}
        self._begun: dict[Namespace, int] = {}
        self._shown: set[Namespace] = set()
        self._agents: dict[Namespace, str] = {(): ORCHESTRATOR}
        self._dispatched = DispatchedPlaces()
        self._waiting: Namespace | None = None
        self._unshown: set[Namespace] = set()
        """Where a checkpoint was told since the state was: an interrupt repeats a state that has no new one."""
        self._asked: dict[str, tuple[Namespace, Any]] = {}
        self._now = 0
        self._by_method: dict[str, Callable[[Mapping[str, Any], Namespace], Iterable[Frame]]] = {
            "messages": self._messages,
            "tools": self._tools,
            "values": self._values,
            "checkpoints": self._checkpoints,
            "lifecycle": self._lifecycle,
            "custom": self._custom,
        }

    def feed(self, event: Mapping[str, Any]) -> Iterable[Frame]:
        """The frames that `event` gives, in order."""
        params = event["params"]
        self._now = max(self._now, params["timestamp"])
        method = event["method"]
        if method == "messages" and self._waiting is None:
            return self._messages(params, ())
        handle = self._by_method.get(method)
        if handle is None:
            return ()
        namespace = self._dispatched.shown(tuple(params["namespace"]))
        if self._waiting is None or method == "checkpoints":
            return handle(params, namespace)
        return [*self._show_waiting(), *handle(params, namespace)]

    def close(self, *, failed: bool = False) -> list[Frame]:
        """What was held back, the root's state last, then what the turn waits for; a failed one waits for nothing."""
        self._waiting = None
        deepest_first = sorted(self._snapshots, key=len, reverse=True)
        frames = [frame for namespace in deepest_first for frame in self._show(namespace)]
        return frames if failed else [*frames, *self._requests()]

    def settled(self, checkpoint: Mapping[str, Any], values: Mapping[str, Any]) -> list[Frame]:
        """The end of a turn whose state is known from its checkpoint: what was held back is older and is dropped."""
        self._snapshots.clear()
        self._waiting = None
        self._now = max(self._now, int(time.time() * 1000))  # the clock that LangGraph stamps events with
        return [self._frame("checkpoints", checkpoint, ()), self._values_frame(values, ())]

    def tell_again(self, messages: Iterable[BaseMessage]) -> list[Frame]:
        """What the checkpoint of an earlier process holds and its log missed: answers whole, results of calls."""
        self._now = max(self._now, int(time.time() * 1000))
        frames: list[Frame] = []
        for message in messages:
            if isinstance(message, ToolMessage):
                frames.extend(self._told(message, ()))
            else:
                place = {"langgraph_checkpoint_ns": f"model:{message.id}", "langgraph_node": "model"}
                frames.extend(self._whole_message(message, place))
        return frames

    # -- messages: rows 3, 4, 11 ------------------------------------------------------------------------------------

    def _messages(self, params: Mapping[str, Any], _graph: Namespace) -> Iterable[Frame]:
        payload, metadata = params["data"]
        if isinstance(payload, BaseMessage):
            return self._whole_message(payload, metadata)
        message = self._open.get(metadata["run_id"])
        if message is None:
            return self._message_start(payload, metadata)
        if payload["event"] == "content-block-delta":
            data = message.delta(payload)
            if data is not None:
                return (self._message_frame(message, data),)
        return (self._rarer_event(message, payload),)

    def _message_start(self, payload: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterable[Frame]:
        if payload["event"] != "message-start" or payload.get("role", "ai") != "ai":
            return ()
        run_id = metadata["run_id"]
        message = OpenMessage(
            id=payload.get("id") or run_id,
            run_id=run_id,
            namespace=self._dispatched.shown(js_namespace(metadata["langgraph_checkpoint_ns"])),
            node=metadata.get("langgraph_node"),
        )
        self._open[run_id] = message
        self.said[message.id] = message
        start = {**plain(payload), "id": message.id, "run_id": run_id, "name": _agent(metadata)}
        return (self._message_frame(message, start),)

    def _rarer_event(self, message: OpenMessage, payload: Mapping[str, Any]) -> Frame:
        data = plain(payload)
        data["run_id"] = message.run_id
        if "index" in payload:
            data["index"] = message.index(payload["index"])
        if payload["event"] in ("message-finish", "error"):
            self._open.pop(message.run_id, None)
        return self._message_frame(message, data)

    def _whole_message(self, whole: BaseMessage, metadata: Mapping[str, Any]) -> Iterable[Frame]:
        if whole.type != "ai" or not whole.id or whole.id in self.said:
            return ()
        message = OpenMessage(
            id=whole.id,
            run_id=whole.id,
            namespace=self._dispatched.shown(js_namespace(metadata["langgraph_checkpoint_ns"])),
            node=metadata.get("langgraph_node"),
        )
        self.said[whole.id] = message
        frames = []
        for event in _as_streamed(message_to_events(whole, message_id=whole.id)):
            data = message.delta(event) if event["event"] == "content-block-delta" else None
            frame = self._message_frame(message, data) if data is not None else self._rarer_event(message, event)
            if event["event"] == "message-start":
                frame = replace(frame, data={**frame.data, "name": whole.name or _agent(metadata)})
            frames.append(frame)
        return frames

    def _message_frame(self, message: OpenMessage, data: Mapping[str, Any]) -> Frame:
        return Frame(method="messages", data=data, timestamp=self._now, namespace=message.namespace, node=message.node)

    # -- tools: rows 5, 6 -------------------------------------------------------------------------------------------

    def _tools(self, params: Mapping[str, Any], graph: Namespace) -> Iterable[Frame]:
        data = params["data"]
        call = data.get("tool_call_id")
        namespace = self._namespace_of(call, graph)
        if data["event"] in ("tool-finished", "tool-error"):
            self.tool_namespaces.pop(call, None)
        shape = with_sources(plain(data), data.get("output"))
        if data["event"] == "tool-error":  # the exception's own text: some carry the headers of a request
            shape["message"] = self._redact(str(shape.get("message") or ""))
        return (self._frame("tools", shape, namespace),)

    def _namespace_of(self, call: str | None, graph: Namespace) -> Namespace:
        """A call's own: that of its task, or of the subagent that code called with it."""
        known = self.tool_namespaces.get(call or "")
        if known is None:
            return graph
        return known if len(known) == 1 else self._dispatched.shown(known)

    def _told(self, result: ToolMessage, graph: Namespace) -> Iterable[Frame]:
        """The one frame of a call that did not run: refused, answered by the person, skipped, or of an unknown tool."""
        namespace = self._namespace_of(result.tool_call_id, graph)
        self.tool_namespaces.pop(result.tool_call_id, None)
        data: dict[str, Any] = {"tool_call_id": result.tool_call_id, "tool_name": result.name}
        if result.status == "error":
            data |= {"event": "tool-error", "message": result.text}
        else:
            data |= {"event": "tool-finished", "output": result}
        return (self._frame("tools", with_sources(plain(data), result), namespace),)

    # -- state: rows 8, 9 -------------------------------------------------------------------------------------------

    def _values(self, params: Mapping[str, Any], namespace: Namespace) -> Iterable[Frame]:
        self._snapshots[namespace] = Snapshot(params["data"], params["timestamp"])
        for item in params.get("interrupts") or ():
            # One interrupt surfaces once per level, the deepest first: that is the namespace it belongs to.
            self._asked.setdefault(item.id, (namespace, item.value))
        messages = len(params["data"].get("messages") or ())
        shown = self._begun.get(namespace)
        if shown is None or shown < messages <= STEPWISE_MESSAGES:
            # Until its checkpoint, which clients must see first and which comes next. They take a message's place in
            # the history from the checkpoint before the state that shows it first (wire.md §5).
            self._waiting = namespace
        self._begun[namespace] = messages
        return ()

    def _requests(self) -> list[Frame]:
        frames = []
        for interrupt_id, (namespace, asked) in self._asked.items():
            value = plain(asked)
            payload = shown(value)
            data = {"interrupt_id": interrupt_id, "kind": kind_of(value).value, "payload": payload, "value": payload}
            frames.append(self._frame("input.requested", data, namespace))
        return frames

    def _checkpoints(self, params: Mapping[str, Any], namespace: Namespace) -> Iterable[Frame]:
        frames = [] if self._waiting in (None, namespace) else self._show_waiting()
        frames.append(self._frame("checkpoints", checkpoint_envelope(params["data"]), namespace))
        self._unshown.add(namespace)
        if self._waiting == namespace:
            frames.extend(self._show_waiting())
        return frames

    def _show_waiting(self) -> list[Frame]:
        namespace, self._waiting = self._waiting, None
        return [] if namespace is None else self._show(namespace)

    def _show(self, namespace: Namespace) -> list[Frame]:
        snapshot = self._snapshots.pop(namespace, None)
        if snapshot is None or (namespace in self._shown and namespace not in self._unshown):
            return []
        self._unshown.discard(namespace)
        self._shown.add(namespace)
        return [self._values_frame(snapshot.values, namespace)]

    def _values_frame(self, values: Mapping[str, Any], namespace: Namespace) -> Frame:
        return self._frame("values", public_values(values, agent=self._agents.get(namespace)), namespace)

    # -- lifecycle of children, custom: row 7 -----------------------------------------------------------------------

    def _lifecycle(self, params: Mapping[str, Any], _graph: Namespace) -> Iterable[Frame]:
        data = {key: plain(value) for key, value in params["data"].items() if key != "namespace"}
        subject = self._dispatched.shown(tuple(params["data"].get("namespace") or ()))
        # That of a subagent which code called is told by whoever called it: LangGraph tells the first one's alone.
        return () if not subject or subject in self._dispatched.subagents else self._child(data, subject)

    def _child(self, data: Mapping[str, Any], subject: Namespace) -> list[Frame]:
        frames: list[Frame] = []
        if isinstance(name := data.get("graph_name"), str):
            self._agents[subject] = name
        if data["event"] in ENDINGS:
            frames.extend(self._show(subject))
            self._begun.pop(subject, None)
            self._agents.pop(subject, None)
        frames.append(self._frame("lifecycle", data, subject))
        return frames

    def _dispatch(self, told: Dispatched, graph: Namespace) -> list[Frame]:
        """The lifecycle of a subagent that code called, with the call of its own for a cause."""
        eval_place = self.tool_namespaces.get(told.eval_call_id, graph) or (f"tools:{told.eval_call_id}",)
        subject = self._dispatched.add(eval_place, told.index)
        if told.event == "started":
            self.tool_namespaces[told.call_id] = subject
        cause = {"type": "toolCall", "tool_call_id": told.call_id}
        return self._child({"event": told.event, "graph_name": told.name, "cause": cause}, subject)

    def _custom(self, params: Mapping[str, Any], namespace: Namespace) -> Iterable[Frame]:
        if isinstance(params["data"], Mapping):
            if isinstance(told := params["data"].get(TOLD_RESULT), ToolMessage):
                return self._told(told, namespace)
            if isinstance(dispatched := params["data"].get(DISPATCHED), Dispatched):
                return self._dispatch(dispatched, namespace)
            if isinstance(shortened := params["data"].get(SHORTENED), Shortened):
                return (self._frame("custom", context_fact(shortened), ()),)
        data = plain(params["data"])
        named = isinstance(data, dict) and isinstance(data.get("name"), str) and "payload" in data
        if named and data["name"].startswith(PRODUCT_PREFIX):
            return ()  # a tool's or a graph's: nobody but the product says what is a fact
        return (self._frame("custom", data if named else {"payload": data}, namespace),)

    def _frame(self, method: FrameMethod, data: Mapping[str, Any], namespace: Namespace) -> Frame:
        return Frame(method=method, data=data, timestamp=self._now, namespace=namespace)


def with_sources(shape: dict[str, Any], result: object) -> dict[str, Any]:
    """The frame of a tool call, with the sources that its result has as a typed artifact: what an answer may cite.

    Every other artifact is for code and stays inside.
    """
    artifact = getattr(result, "artifact", None)
    if isinstance(artifact, dict) and artifact.get("type") == "sources" and isinstance(shape.get("output"), dict):
        shape["output"]["artifact"] = plain(artifact)
    return shape


def _as_streamed(events: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The events of a message that was not streamed, with the arguments of its calls as one piece, as of a stream."""
    for event in events:
        content = event.get("content")
        if isinstance(content, Mapping) and content.get("type") == "tool_call":
            if event["event"] == "content-block-start":
                yield {**event, "content": {**content, "type": "tool_call_chunk", "args": ""}}
                continue
            piece = {"type": "tool-call-delta", "args": json.dumps(plain(content.get("args")), ensure_ascii=False)}
            yield {"event": "content-block-delta", "index": event["index"], "delta": piece}
        yield event


def _agent(metadata: Mapping[str, Any]) -> str:
    """Who says a message: a subagent by its name, else the orchestrator."""
    return metadata.get(AGENT_NAME) or ORCHESTRATOR


def context_fact(shortened: Shortened) -> dict[str, Any]:
    """`pizzabot.context` (spec/12 §0) of what happened by itself in a turn."""
    tokens = {"tokens_before": shortened.tokens_before, "tokens_after": shortened.tokens_after}
    return {"name": "pizzabot.context", "payload": {"v": 1, "reason": "auto", **tokens}}


def checkpoint_envelope(data: Mapping[str, Any]) -> dict[str, Any]:
    """`{id, parent_id?, step, source}` of LangGraph's full checkpoint payload, which repeats the whole state."""
    metadata = data.get("metadata") or {}
    envelope = {
        "id": data["config"]["configurable"]["checkpoint_id"],
        "step": metadata.get("step"),
        "source": metadata.get("source"),
    }
    parent = ((data.get("parent_config") or {}).get("configurable") or {}).get("checkpoint_id")
    return {**envelope, "parent_id": parent} if parent else envelope
