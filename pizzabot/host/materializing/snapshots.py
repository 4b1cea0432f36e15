"""`Snapshots`: generated bundles on disk, switched by one small file. A crash leaves the old one or the new one.

plugin-materializations/<bundle>/state.json                   {"snapshot": "…", "lastSyncedAt": 1769000000.0}
plugin-materializations/<bundle>/snapshots/<ms>-<uuid>/       the bundle that it names; others are leftovers
plugin-materializations/<bundle>/.staging-<uuid>/             is being made
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from pizzabot.host.materializing.states import Snapshot
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.support.paths import safe_segment

FOLDER = "plugin-materializations"
MAX_STATE_BYTES = 4_096

_STAGING = ".staging-"


class Snapshots:
    """All blocking, for one caller per bundle at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def every(self) -> dict[str, Snapshot]:
        """The last good one of each bundle that has any."""
        if not self._folder.is_dir():
            return {}
        names = [entry.name for entry in self._folder.iterdir()]
        return {name: found for name in names if (found := self.last(name)) is not None}

    def last(self, bundle: str) -> Snapshot | None:
        """A state that cannot be read, or that names no bare folder which is there, counts as none (spec/04 §11)."""
        place = self._folder / bundle
        try:
            with (place / "state.json").open("rb") as file:
                state = json.loads(file.read(MAX_STATE_BYTES))
            name, synced_at = safe_segment(state["snapshot"]), float(state["lastSyncedAt"])
            folder = place / "snapshots" / name
            if math.isfinite(synced_at) and folder.is_dir() and not folder.is_symlink():
                return Snapshot(folder=folder, synced_at=synced_at)
        except (OSError, ValueError, TypeError, KeyError, RecursionError, InvalidRequest, AttributeError):
            return None
        return None

    def begin(self, bundle: str) -> Path:
        """An empty folder to make the next one in. What earlier runs left over is gone then."""
        place = self._folder / safe_segment(bundle)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._prune(place, self.last(bundle))
        staging = place / f"{_STAGING}{uuid4().hex}"
        staging.mkdir(mode=0o700)
        return staging

    def keep(self, bundle: str, staging: Path, now: float) -> Snapshot:
        """Make it the bundle's: renamed first, named in the state then."""
        place = self._folder / bundle
        folder = place / "snapshots" / f"{round(now * 1000)}-{uuid4().hex}"
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        staging.rename(folder)
        written = place / f"state-{uuid4().hex}.tmp"
        with written.open("wb") as file:
            file.write(json.dumps({"snapshot": folder.name, "lastSyncedAt": now}).encode())
            file.flush()
            os.fsync(file.fileno())
        written.replace(place / "state.json")
        return Snapshot(folder=folder, synced_at=now)

    def forget(self, bundle: str) -> None:
        """All of it; the state goes first."""
        place = self._folder / safe_segment(bundle)
        with suppress(FileNotFoundError):
            (place / "state.json").unlink()
        shutil.rmtree(place, ignore_errors=True)

    def _prune(self, place: Path, last: Snapshot | None) -> None:
        kept = None if last is None else last.folder
        snapshots = place / "snapshots"
        for entry in [*place.iterdir(), *(snapshots.iterdir() if snapshots.is_dir() else ())]:
            if entry.name.startswith(_STAGING) or (entry.parent == snapshots and entry != kept):
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.suffix == ".tmp":
                entry.unlink(missing_ok=True)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """What a materializer returned. Raises `InvalidRequest` `invalid_name` before any of it is written."""
    paths = {path: [safe_segment(part, what="path segment") for part in path.split("/")] for path in files}
    for path, segments in paths.items():
        target = folder.joinpath(*segments)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:  # noqa: PTH123
            file.write(files[path])
