"""Safe paths: one validated segment, and a path that stays inside a folder even when links try to lead out."""

from __future__ import annotations

from pathlib import Path

from pizzabot_hookspecs.errors import InvalidRequest, NotPermitted

MAX_SEGMENT_BYTES = 255
"""What common file systems take for one name."""

MAX_PATH_BYTES = 4096
"""PATH_MAX of Linux; also the bound for a relative path given by a client or an archive."""


def safe_segment(text: str, *, what: str = "name") -> str:
    """`text` as it is, when it can be one name in a folder and nothing else.

    Raises `InvalidRequest` `invalid_name` for the empty text, `.`, `..`, separators of any platform, control
    characters, what is not UTF-8 and more than 255 bytes (spec/09 §2.11). `what` names the thing in the error.
    """
    reason = _fault(text)
    if reason is not None:
        raise InvalidRequest("invalid_name", f"{what} {text[:80]!r} cannot be used: {reason}")
    return text


def _fault(text: str) -> str | None:
    if not text:
        return "it is empty"
    if text in {".", ".."}:
        return "it is a path, not a name"
    if "/" in text or "\\" in text:
        return "it has a path separator"
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        return "it has control characters"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    return f"it is longer than {MAX_SEGMENT_BYTES} bytes" if size > MAX_SEGMENT_BYTES else None


def contained_path(root: Path, relative: str) -> Path:
    """The real path of `relative` below `root`; it need not exist yet. Links are followed only where they stay inside.

    `relative` has `/` between safe segments. Raises `InvalidRequest` `invalid_name` for anything else (absolute, `..`),
    `NotPermitted` `path_outside` where a link leads out of `root` or round in a circle.
    """
    if len(relative.encode(errors="replace")) > MAX_PATH_BYTES:
        raise InvalidRequest("invalid_name", f"path is longer than {MAX_PATH_BYTES} bytes")
    segments = [safe_segment(segment, what="path segment") for segment in relative.split("/")]
    base = root.resolve()
    try:
        target = base.joinpath(*segments).resolve()
    except (OSError, RuntimeError) as error:  # a circle of links: RuntimeError before Python 3.13
        raise NotPermitted("path_outside", f"{relative!r} cannot be followed inside {base}: {error}") from error
    if not target.is_relative_to(base):
        raise NotPermitted("path_outside", f"{relative!r} leads out of {base} through a link")
    return target
