"""`Notebook`: a file with a line of JSON for each note. Blocking."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Lock

from pizzabot_hookspecs import TooLarge

MAX_CHARACTERS = 2_000
"""Of one note."""


class Notebook:
    def __init__(self, folder: Path, *, max_notes: int) -> None:
        self._file = folder / "notes.ndjson"
        self._max_notes = max_notes
        self._lock = Lock()

    def write(self, text: str) -> int:
        """The number of the new note, from 1. Raises `TooLarge` `note_too_long` and `notes_full`."""
        if len(text) > MAX_CHARACTERS:
            raise TooLarge("note_too_long", f"a note has at most {MAX_CHARACTERS} characters; this has {len(text)}")
        with self._lock:
            number = len(self._lines()) + 1
            if number > self._max_notes:
                detail = (
                    f"there are {self._max_notes} notes; remove {self._file} or raise [agent_tools.notes] max_notes"
                )
                raise TooLarge("notes_full", detail)
            self._append(json.dumps(text))
            return number

    def read(self) -> str:
        with self._lock:
            return "\n".join(json.loads(line) for line in self._lines())

    def _lines(self) -> list[str]:
        return self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []

    def _append(self, line: str) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "a", encoding="utf-8") as file:  # noqa: PTH123 - private from its first byte
            file.write(f"{line}\n")
