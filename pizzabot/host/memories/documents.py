"""The documents on the disk: where an owner's lie, what their ids are, and one of them removed or looked into."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pizzabot.host.files.descriptors import Root, check_regular, opened_file, opened_folder, read_up_to, status
from pizzabot.host.files.disk_reading import list_folder
from pizzabot.host.files.disk_writing import Modes
from pizzabot_hookspecs import LOCAL, InvalidRequest, PizzabotError, TooLarge

MAX_MEMORY = 256 * 1024
"""Bytes of a document that is written over HTTP."""
MAX_READ = 1024 * 1024
"""Bytes of a document that is read over HTTP, and that the agent writes: it may write more than a person can."""
MAX_MEMORIES = 1_000
"""Documents in a listing, the newest."""
MAX_PREVIEW = 120
"""Characters of a document in the listing."""
PRIVATE = Modes(file=0o600, folder=0o700)

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}", re.IGNORECASE | re.ASCII)
_PREVIEW_BYTES = 2_048
_ENDING = ".md"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRow:
    id: str
    preview: str
    size: int
    updated_at: float


def memories_root(data_root: Path, owner: str) -> Root:
    """The folder of an owner's documents, made where it is missing: `memories`, for others than the one person of a
    local installation `memories-of/<owner>`."""
    own = ("memories",) if owner == LOCAL.owner else ("memories-of", f"owner-{quote(owner, safe='')}")
    folder = Path(os.path.realpath(data_root)).joinpath(*own)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Root(str(folder))


def checked_memory_id(memory_id: str) -> str:
    """Raises `InvalidRequest` `invalid_id` (spec/01 §7)."""
    if _ID.fullmatch(memory_id):
        return memory_id
    problem = "must be letters, digits, _ and - of ASCII, at most 128, the first a letter or a digit"
    raise InvalidRequest("invalid_id", f"the id of a memory {problem}", fields={"id": problem})


def check_document(path: str, content: bytes) -> None:
    """What the agent writes has to be a document that the person can find, read and delete.

    Raises `InvalidRequest` `invalid_path`, `TooLarge` `memory_too_large`.
    """
    if not (path.endswith(_ENDING) and _ID.fullmatch(path[1 : -len(_ENDING)])):
        raise InvalidRequest(
            "invalid_path",
            f"{path!r} is no memory: memories are /memories/<topic>{_ENDING}, in no folder, the topic of letters,"
            " digits, _ and - of ASCII",
        )
    if len(content) > MAX_READ:
        raise TooLarge("memory_too_large", f"{path!r} would have {len(content)} bytes; at most {MAX_READ} are kept")


def path_of(memory_id: str) -> str:
    return f"/{memory_id}{_ENDING}"


def modified_at(root: Root, memory_id: str) -> float | None:
    """When the document was changed, None where there is none. Only its exact id counts."""
    name = path_of(memory_id)[1:]
    with opened_folder(root, ()) as place:
        try:
            found = status(place, name)
        except FileNotFoundError:
            return None
        check_regular(found.st_mode, path_of(memory_id))
        return found.st_mtime


def remove(root: Root, memory_id: str) -> None:
    name = path_of(memory_id)[1:]
    with opened_folder(root, ()) as place, suppress(FileNotFoundError):
        check_regular(status(place, name).st_mode, path_of(memory_id))
        os.unlink(name, dir_fd=place.fd)


def newest(root: Root, most_entries: int) -> Sequence[MemoryRow]:
    """Documents with an id, the newest first, `MAX_MEMORIES` at most. What lies in folders is the agent's alone."""
    entries = [
        entry
        for entry in list_folder(root, "/", most_entries)
        if not entry.is_folder and entry.path.endswith(_ENDING) and _ID.fullmatch(entry.path[1 : -len(_ENDING)])
    ]
    entries.sort(key=lambda entry: (-(entry.modified_at or 0), entry.path))
    rows = []
    for entry in entries[:MAX_MEMORIES]:
        with suppress(OSError, PizzabotError):  # gone since it was listed
            rows.append(
                MemoryRow(
                    id=entry.path[1 : -len(_ENDING)],
                    preview=_preview(root, entry.path[1:]),
                    size=entry.size or 0,
                    updated_at=entry.modified_at or 0.0,
                )
            )
    return rows


def _preview(root: Root, name: str) -> str:
    with opened_folder(root, ()) as place, opened_file(place, name) as fd:
        head = read_up_to(fd, _PREVIEW_BYTES)
    return " ".join(head.decode(errors="ignore").split())[:MAX_PREVIEW]
