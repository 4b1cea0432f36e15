"""How a run ends: one pure decision, abort before interrupted before failed (spec/02 §2.3, wire.md §0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pizzabot_hookspecs.errors import classify
from pizzabot_hookspecs.storage_backends import CancelReason, RunStatus
from pizzabot_hookspecs.wire import ASSISTANT_ID

NEEDS_ATTENTION = "NEEDS_ATTENTION"
"""The code of a run that a crash left where only a person can say how to go on (durable-runs rule 7)."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The status of the row and the data of the root's last lifecycle frame."""

    status: RunStatus
    data: Mapping[str, Any]
    error_code: str | None = None
    error: str | None = None


def decide_ending(
    *,
    cancelled: CancelReason | None,
    error: BaseException | None,
    interrupted: bool,
    attention: str | None = None,
    redact: Callable[[str], str] = str,
) -> Ending:
    """The ending of a run whose frames are over.

    A stopped run is shown as `completed` with code CANCELLED, because the Python SDK never finishes on `interrupted`;
    a superseded one as `interrupted` with code SUPERSEDED, because a `completed` of the old run would resolve the new
    turn's output in the JS SDK. Both rows say cancelled. `attention` is the reason of a recovery question. `failed`
    never has a key `reason` (wire.md §4).
    """
    if attention is not None and cancelled is None:
        data = _root("failed", error=attention, code=NEEDS_ATTENTION)
        return Ending(status=RunStatus.NEEDS_ATTENTION, data=data, error_code=NEEDS_ATTENTION, error=attention)
    if cancelled is CancelReason.SUPERSEDED:
        return Ending(status=RunStatus.CANCELLED, data=_root("interrupted", code="SUPERSEDED"))
    if cancelled is not None:
        return Ending(status=RunStatus.CANCELLED, data=_root("completed", code="CANCELLED"))
    if interrupted and error is None:
        return Ending(status=RunStatus.INTERRUPTED, data=_root("interrupted"))
    if error is not None:
        code = classify(error)
        text = redact(str(error) or type(error).__name__)
        return Ending(status=RunStatus.ERROR, data=_root("failed", error=text, code=code), error_code=code, error=text)
    return Ending(status=RunStatus.SUCCESS, data=_root("completed"))


def running() -> Mapping[str, Any]:
    """The data of a run's first frame: `running`, not `started` (wire.md §4)."""
    return _root("running")


def _root(event: str, **more: str) -> dict[str, Any]:
    return {"event": event, "graph_name": ASSISTANT_ID, **more}
