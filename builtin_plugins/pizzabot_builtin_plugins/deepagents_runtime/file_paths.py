"""How a file's path is told to a model, and read back (spec/05 §6).

Models change what they cannot spell: they compose accents, turn full-width letters into plain ones, drop marks. A path
of a granted folder is therefore ASCII when it is told: other bytes, `%` and backslashes as `%XX`, spaces as they are.
Both that and the plain spelling are understood. Paths elsewhere are the agent's own and stay as it wrote them.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 !\"#$&'()*+,-./:;<=>?@[]^_`{|}~")


def is_in(place: str, path: str) -> bool:
    """Whether `path` is the folder `place` or lies below it."""
    return path == place or path.startswith(f"{place}/")


def encoded(path: str) -> str:
    """`path` in printable ASCII."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in path.encode("utf-8", "surrogatepass"))


def decoded(path: str) -> str:
    """What `path` stands for. One that holds no valid escapes, or escapes that are no UTF-8, stands for itself.

    Escapes that would be a separator, `.`, `..` or a control character are left as they are written: they name nothing.
    """
    if "%" not in path:
        return path
    return "/".join(_segment(segment) for segment in path.split("/"))


def _segment(segment: str) -> str:
    if not _ESCAPE.search(segment):
        return segment
    raw = re.sub(_ESCAPE, lambda found: chr(int(found[0][1:], 16)), "".join(_as_latin(segment)))
    try:
        name = raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return segment
    unsafe = (
        "/" in name or name in (".", "..") or any(ord(character) < 0x20 or character == "\x7f" for character in name)
    )
    return segment if unsafe else name


def _as_latin(segment: str) -> str:
    """The segment's UTF-8 bytes, one character each."""
    return segment.encode("utf-8", "surrogatepass").decode("latin-1")
