"""Remembers the thread that was talked on last, for each server: a small file in the user's state folder, mode 0600."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

MAX_SERVERS = 50
MAX_FILE_BYTES = 100_000
ID_RULE = (
    "a thread id has 1 to 255 of the characters A-Z a-z 0-9 . _ ~ : @ - and is none of . .. list events search activity"
)

_ID = re.compile(r"(?!(?:\.{1,2}|list|events|search|activity)\Z)[A-Za-z0-9._~:@-]{1,255}")


def is_thread_id(text: str) -> bool:
    """Whether the server takes it (docs/use/protocol.md)."""
    return _ID.fullmatch(text) is not None


class LastThreads:
    """`path` is `<user state>/pizzabot/chat.json` unless it is given. A file that cannot be read is an empty one."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def get(self, url: str) -> str | None:
        thread_id = self._read().get(url)
        return thread_id if thread_id is not None and is_thread_id(thread_id) else None

    def put(self, url: str, thread_id: str) -> str | None:
        """Write it, replacing the file in one step. Why it cannot be written, or None."""
        known = self._read()
        if list(known.items())[-1:] == [(url, thread_id)]:
            return None
        known.pop(url, None)
        kept = dict([*known.items(), (url, thread_id)][-MAX_SERVERS:])
        try:
            self._write(json.dumps(kept, indent=1))
        except OSError as error:
            return str(error)
        return None

    def _where(self) -> Path:
        if self._path is None:
            from platformdirs import user_state_path

            self._path = user_state_path("pizzabot") / "chat.json"
        return self._path

    def _read(self) -> dict[str, str]:
        try:
            with self._where().open(encoding="utf-8") as file:
                value = json.loads(file.read(MAX_FILE_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(value, dict):
            return {}
        return {url: thread for url, thread in value.items() if isinstance(thread, str)}

    def _write(self, text: str) -> None:
        path = self._where()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes it 0600; beside its target, so that the replacement is one rename.
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".chat-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
