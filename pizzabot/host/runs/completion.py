"""What a runtime left open is closed in the log: cut-off messages and tool calls get their last frame from the host.

LangGraph sends no finish for a message that a stop or an error cut off; SDKs before 1.12 wait for it for ever
(wire.md §5). A call that a finished message has made and that never began, because its tool is unknown, its arguments
are bad, or the run was stopped, gets its end, too (spec/12 §0). Only frames that open or close something are looked
at: a text delta costs one dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pizzabot.host.text import to_json
from pizzabot_hookspecs.interrupts import InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import NewEvent
from pizzabot_hookspecs.wire import Namespace

ABORTED = "aborted"
"""The code of a closing frame that is the host's."""
_CALLS = ("tool_call", "invalid_tool_call")
_MessageKey = tuple[Namespace, str | None, str | None]
_CallKey = tuple[Namespace, str]


class LogCompletion:
    """Follows one run's frames and knows what is open."""

    def __init__(self) -> None:
        self._messages: dict[_MessageKey, str | None] = {}
        self._written: dict[_MessageKey, list[str]] = {}
        self._called: dict[_CallKey, str | None] = {}
        self._tools: dict[_CallKey, str | None] = {}
        self._interrupts: dict[str, NewInterrupt] = {}
        self.said: set[str] = set()
        self.called: set[str] = set()
        """Ids of messages and of calls that went to their end by themselves."""

    def see(self, method: str, namespace: Namespace, node: str | None, data: Mapping[str, Any]) -> None:
        """Take note of a frame that goes into the log."""
        if method == "messages":
            self._see_message((namespace, node, data.get("run_id")), data)
        elif method == "tools":
            self._see_tool(namespace, node, data)
        elif method == "input.requested":
            interrupt = _interrupt(namespace, data)
            self._interrupts[interrupt.interrupt_id] = interrupt
        elif method == "input.answered":
            for interrupt_id in data.get("interrupt_ids") or ():
                self._interrupts.pop(str(interrupt_id), None)

    def _see_message(self, key: _MessageKey, data: Mapping[str, Any]) -> None:
        event = data.get("event")
        if event == "message-start":
            self._messages[key] = data.get("id")
        elif event == "content-block-finish":
            content = data.get("content")
            if isinstance(content, Mapping) and content.get("type") in _CALLS and content.get("id"):
                self._written.setdefault(key, []).append(str(content["id"]))
        elif event in ("message-finish", "error"):
            message_id = self._messages.pop(key, None)
            calls = self._written.pop(key, ())
            if event == "message-finish":
                if message_id is not None:
                    self.said.add(message_id)
                graph, node = key[0][:-1], key[1]
                self._called |= {(graph, call_id): node for call_id in calls}

    def _see_tool(self, namespace: Namespace, node: str | None, data: Mapping[str, Any]) -> None:
        """The last segment of a tool's namespace is the call's own, except where a runtime knew only the graph's."""
        call_id = str(data.get("tool_call_id"))
        for graph in (namespace[:-1], namespace):
            self._called.pop((graph, call_id), None)
        if data.get("event") == "tool-started":
            self._tools[namespace, call_id] = node
        elif data.get("event") in ("tool-finished", "tool-error"):
            self._tools.pop((namespace, call_id), None)
            if data.get("code") != ABORTED:
                self.called.add(call_id)

    @property
    def interrupts(self) -> tuple[NewInterrupt, ...]:
        """What the run asked for and nobody answered in it, in order."""
        return tuple(self._interrupts.values())

    def close(self, *, reason: str | None, now: Callable[[], int], keep_tools: bool = False) -> list[NewEvent]:
        """The frames that close what is open; `keep_tools` while an approval is pending: those calls are waiting.

        `reason` is why the run was cut off; None where it went to its end, and what is still open then never ran.
        """
        events = [
            NewEvent(
                method="messages",
                namespace=namespace,
                node=node,
                timestamp=now(),
                data=to_json(
                    {"event": "error", "message": reason or ABORTED, "code": ABORTED}
                    | ({"run_id": run_id} if run_id is not None else {})
                    | ({"id": message_id} if message_id is not None else {})
                ),
            )
            for (namespace, node, run_id), message_id in self._messages.items()
        ]
        self._messages.clear()
        self._written.clear()
        if not keep_tools:
            end = {"event": "tool-error", "message": "the tool did not run"}
            if reason is not None:
                end |= {"message": reason, "code": ABORTED}
            events += [
                NewEvent(
                    method="tools",
                    namespace=namespace,
                    node=node,
                    timestamp=now(),
                    data=to_json(end | {"tool_call_id": call_id}),
                )
                for (namespace, call_id), node in (self._tools | self._called).items()
            ]
            self._tools.clear()
            self._called.clear()
        return events


def _interrupt(namespace: Namespace, data: Mapping[str, Any]) -> NewInterrupt:
    """The row of an `input.requested` frame. A kind that is not known is an approval: it refuses plain messages."""
    payload = data.get("payload", data.get("value"))
    shown = payload if isinstance(payload, Mapping) else {"question": payload}
    kind = data.get("kind")
    known = InterruptKind(kind) if kind in tuple(InterruptKind) else InterruptKind.APPROVAL
    return NewInterrupt(interrupt_id=str(data.get("interrupt_id")), kind=known, payload=shown, namespace=namespace)
