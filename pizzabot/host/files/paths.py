"""Paths within an area of files: what may be one, and how they are put together (`pizzabot_hookspecs.files`)."""

from __future__ import annotations

import re
from urllib.parse import unquote

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.files import MAX_PATH_BYTES

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SHOWN = 120
_DECODINGS = 3  # `%25252e` is as deep as anybody has been seen to hide a dot


def checked_path(path: str) -> str:
    """`path` as it is, where it may be one of an area: absolute, and by the rules of `pizzabot_hookspecs.files`.

    Raises `InvalidRequest` `invalid_path`, also for what is `..` once it is percent-decoded (spec/05 §6).
    """
    problem = problem_of(path)
    if problem is not None:
        raise InvalidRequest("invalid_path", f"the path {shown(path)} {problem}", fields={"path": problem})
    return path


def problem_of(path: str) -> str | None:
    """Why `path` cannot be a path, None where it can."""
    if not path.startswith("/"):
        return "must begin with /"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "is not Unicode text"
    if size > MAX_PATH_BYTES:
        return f"has {size} bytes; at most {MAX_PATH_BYTES} are allowed"
    if path == "/":
        return None
    return next(filter(None, map(_problem_of_name, path[1:].split("/"))), None)


def may_be_named(name: str, folder: str = "/") -> bool:
    """Whether a file of this name, in a folder that has a path, can have one."""
    try:
        size = len(joined(folder, name).encode())
    except UnicodeEncodeError:
        return False
    return size <= MAX_PATH_BYTES and "/" not in name and _problem_of_name(name) is None


def _problem_of_name(name: str) -> str | None:
    if not name:
        return "has an empty part; write it without // and without a / at its end"
    if "\\" in name:
        return "has a backslash; folders are separated by /"
    if _CONTROL.search(name):
        return "has a control character"
    return "has a part . or .. in it; write where it leads" if _means_dots(name) else None


def _means_dots(name: str) -> bool:
    """`.` or `..`, or what becomes one of them once it is decoded."""
    for _ in range(_DECODINGS):
        if _is_dots(name):
            return True
        if "%" not in name:
            return False
        name = unquote(name)
    return _is_dots(name)


def _is_dots(name: str) -> bool:
    if "." not in name:
        return False
    return any(part in {".", ".."} for part in name.replace("\\", "/").split("/"))


def shown(path: str) -> str:
    """`path` for an error of one line, shortened."""
    return repr(path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…")


def segments(path: str) -> tuple[str, ...]:
    """The names of a checked path; none for `/`."""
    return tuple(path[1:].split("/")) if path != "/" else ()


def joined(folder: str, name: str) -> str:
    return f"/{name}" if folder == "/" else f"{folder}/{name}"


def relative(path: str, folder: str) -> str:
    """`path`, which lies below `folder`, without it and without a leading `/`."""
    return path[1:] if folder == "/" else path[len(folder) + 1 :]


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it."""
    return folder in ("/", path) or path.startswith(f"{folder}/")
