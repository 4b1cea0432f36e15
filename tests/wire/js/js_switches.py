"""The mistakes that a server of this protocol can make, each as one switch of the proxy (wire.md §12)."""

from __future__ import annotations

from typing import Any

from js_proxy import Frame, Switch


class NativeNamespaces(Switch):
    """Messages and tools lie at the namespace of their graph, as LangGraph for Python has them."""

    def body(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The server's filter would judge by the right namespaces: the client's own does it."""
        if path.endswith("/stream/events"):
            return {key: value for key, value in body.items() if key not in ("namespaces", "depth")}
        return body

    def frames(self, frame: Frame) -> list[Frame]:
        if frame.get("method") in ("messages", "tools"):
            params = frame["params"]
            frame = {**frame, "params": {**params, "namespace": params["namespace"][:-1]}}
        return [frame]


class WholeThreadReplay(Switch):
    """A new connection gets everything that was ever said on the thread."""

    def body(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"since": 0, **body} if path.endswith("/stream/events") else body


class PlainEventIds(Switch):
    """Unique, but they do not say whose run it is."""

    def frames(self, frame: Frame) -> list[Frame]:
        return [{**frame, "event_id": f"event-{frame['seq']}"}] if "seq" in frame else [frame]


class CheckpointsAfterValues(Switch):
    """As LangGraph for Python has them: the state, and then its id."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, ...], Frame] = {}

    def frames(self, frame: Frame) -> list[Frame]:
        namespace = tuple(frame.get("params", {}).get("namespace", ()))
        if frame.get("method") == "checkpoints":
            self._held[namespace] = frame
            return []
        if frame.get("method") == "values" and namespace in self._held:
            return [frame, self._held.pop(namespace)]
        return [frame]


class RawNext(Switch):
    """A stopped run's state says what would be next, though nothing runs."""

    def answer(self, path: str, answer: Any) -> Any:
        return {**answer, "next": answer["next"] or ["model"]} if path.endswith("/state") else answer
