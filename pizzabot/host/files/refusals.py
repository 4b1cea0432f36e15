"""The errors of an area, and which one an error of the system is. None of them says where the area lies."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pizzabot.host.files.paths import shown
from pizzabot_hookspecs import InvalidRequest, NotFound, NotPermitted, PizzabotError, TooLarge, Unavailable


def no_such_file(path: str) -> NotFound:
    return NotFound("no_such_file", f"there is no {shown(path)}; list its folder to see what there is")


def is_a_link(path: str) -> NotPermitted:
    return NotPermitted("not_allowed", f"{shown(path)} is a link, or lies behind one; links are not followed")


def not_a_file(path: str) -> InvalidRequest:
    return InvalidRequest("not_a_file", f"{shown(path)} is not a regular file", fields={"path": "not a file"})


def not_a_folder(path: str) -> InvalidRequest:
    return InvalidRequest("not_a_folder", f"{shown(path)} is not a folder", fields={"path": "not a folder"})


def too_large(path: str, size: int, most: int) -> TooLarge:
    return TooLarge("file_too_large", f"{shown(path)} has {size:,} bytes or more; at most {most:,} are allowed")


def failed(path: str, reason: str) -> Unavailable:
    return Unavailable("file_failed", f"{shown(path)}: {reason}")


@contextmanager
def told(path: str) -> Iterator[None]:
    """Errors of the system, as errors of the area about `path`."""
    try:
        yield
    except OSError as error:
        raise _meant(error, path) from None


def _meant(error: OSError, path: str) -> PizzabotError:
    if error.errno == errno.ENOENT:
        return no_such_file(path)
    if error.errno == errno.ELOOP:
        return is_a_link(path)
    if error.errno == errno.ENAMETOOLONG:
        reason = "has a name that is too long for the disk"
        return InvalidRequest("invalid_path", f"the path {shown(path)} {reason}", fields={"path": reason})
    if error.errno == errno.EISDIR:
        return not_a_file(path)
    # Only the number's own text: what an OSError says itself names the place on the machine.
    return failed(path, (os.strerror(error.errno) if error.errno else "the system gave no reason").lower())
