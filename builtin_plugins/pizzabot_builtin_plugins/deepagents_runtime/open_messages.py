"""A message that a model is saying: its place, its blocks, and what is known of its text if it is cut off.

The hot path of a run: `delta` is called once per token, so it builds one dict and looks up one index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pizzabot_builtin_plugins.deepagents_runtime.dispatched import stored_segment
from pizzabot_hookspecs.wire import Namespace


@dataclass(slots=True)
class OpenMessage:
    """One model call. `indices` makes block indices dense (0, 1, 2 …) in order of appearance, per message."""

    id: str
    run_id: str
    namespace: Namespace
    node: str | None
    text: list[str] = field(default_factory=list)
    indices: dict[object, int] = field(default_factory=dict)

    @property
    def at_root(self) -> bool:
        """Whether the orchestrator says it, not a subagent: only such a message belongs to the thread's state."""
        return len(self.namespace) == 1

    def index(self, index: object) -> int:
        dense = self.indices.get(index)
        if dense is None:
            dense = self.indices[index] = len(self.indices)
        return dense

    def delta(self, payload: Mapping[str, Any]) -> dict[str, Any] | None:
        """The wire form of a text or reasoning delta or a piece of tool arguments; None for the rarer kinds."""
        delta = payload["delta"]
        kind = delta["type"]
        if kind == "text-delta":
            text = well_formed(delta["text"])
            self.text.append(text)
            change = {"type": kind, "text": text}
        elif kind == "tool-call-delta":
            # Not as a `delta`: SDKs up to 1.11 throw on `tool-call-delta`; this form all of 1.11 to 1.15 accept.
            return {
                "event": "content-block-delta",
                "index": self.index(payload["index"]),
                "content": {"type": "tool_call_chunk", "args": well_formed(delta["args"])},
                "run_id": self.run_id,
            }
        elif kind == "reasoning-delta":
            change = {"type": kind, "reasoning": well_formed(delta["reasoning"])}
        else:
            return None
        return {
            "event": "content-block-delta",
            "index": self.index(payload["index"]),
            "delta": change,
            "run_id": self.run_id,
        }


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced: UTF-8 has no way to write them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def js_namespace(checkpoint_ns: str) -> Namespace:
    """LangGraph's `a:1|model:2` as clients know it: `("a:1", "model_request:2")` (wire.md §9 row 3)."""
    return tuple(
        f"model_request:{segment[6:]}" if segment.startswith("model:") else segment
        for segment in checkpoint_ns.split("|")
    )


def checkpoint_namespace(namespace: Namespace) -> str:
    """`js_namespace` backwards: clients' `("a:1", "model_request:2")` as LangGraph stores it, `a:1|model:2`.

    A segment may also be a joined namespace itself, by `|` or by NUL as the JavaScript SDK joins it (wire.md §8.3).
    """
    segments = "|".join(namespace).replace("\0", "|").split("|")
    return "|".join(
        f"model:{segment.removeprefix('model_request:')}"
        if segment.startswith("model_request:")
        else stored_segment(segment)
        for segment in segments
    )
