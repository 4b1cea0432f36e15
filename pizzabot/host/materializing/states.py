"""`Materialization`: how it is with what a bundle's materializer makes, as rows tell it (spec/01 §9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from pizzabot_hookspecs.wire import JsonValue


class MaterializationState(StrEnum):
    """`stale`: the last run failed and what an earlier one made is used. `error`: nothing was made yet."""

    RUNNING = "running"
    SYNCED = "synced"
    STALE = "stale"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A generated bundle that is good. `synced_at` in seconds since the epoch."""

    folder: Path
    synced_at: float


@dataclass(frozen=True, kw_only=True)
class Materialization:
    """`sources` are absolute. `detail` is one line, redacted."""

    state: MaterializationState
    sources: tuple[Path, ...] = ()
    snapshot: Snapshot | None = None
    detail: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        told: dict[str, JsonValue] = {
            "state": self.state.value,
            "sourceRoots": [str(source) for source in self.sources],
        }
        if self.snapshot is not None:
            told["lastSyncedAt"] = datetime.fromtimestamp(self.snapshot.synced_at, UTC).isoformat()
        if self.detail:
            told["detail"] = self.detail
        return told
