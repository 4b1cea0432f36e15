"""The name of a file that somebody sends, as it is kept: the last part of a path, without what no name may hold."""

from __future__ import annotations

import unicodedata

from pizzabot.host.text import clean_text

MAX_NAME_BYTES = 200
"""Of a file's name in UTF-8; a longer one is cut before its extension."""
_NAMELESS = "file"


def clean_name(filename: str) -> str:
    """Never empty, never `.` or `..`; other scripts stay as they are."""
    last = clean_text(filename).replace("\\", "/").rpartition("/")[2]
    name = "".join(one for one in last if unicodedata.category(one) != "Cc").strip()
    if not name.strip("."):
        return _NAMELESS
    return cut(name, MAX_NAME_BYTES)


def cut(name: str, size: int) -> str:
    """`name` in at most `size` bytes, with its extension where that is short."""
    if len(name.encode()) <= size:
        return name
    stem, dot, extension = name.rpartition(".")
    ending = f".{extension}" if dot and stem and len(extension.encode()) <= 16 else ""
    room = size - len(ending.encode())
    kept = (stem if ending else name).encode()[:room].decode(errors="ignore")
    return f"{kept}{ending}"
