# ruff: noqa: TID253 - imported behind `runtime.prepare`
"""What `read_file` returns, as content: without the header, and refused where the page was cut (spec/05 §7).

DeepAgents writes notices, then `@@ lines A-B of T | next offset N | truncated due to size @@`, then the lines as they
are.
"""

from __future__ import annotations

import re

from deepagents.middleware.filesystem import EMPTY_CONTENT_WARNING

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.refusals import Refused

_HEADER = re.compile(r"^@@ lines (?P<first>\d+)-(?P<last>\d+)(?P<rest>.*) @@$", re.MULTILINE)

_BEHIND = re.compile(r"Line offset (?P<offset>\d+) exceeds file length \((?P<lines>\d+) lines?\)")


def is_the_end(error: str) -> bool:
    """Whether a tool's error says that the page begins right behind the last line, as the last of a loop's does."""
    behind = _BEHIND.fullmatch(error)
    return behind is not None and behind["offset"] == behind["lines"]


def content_of(text: str) -> str:
    """The lines of a page. Raises `Refused` with `offset` and `limit` where some that were asked for are missing."""
    header = _HEADER.search(text)
    if header is None:
        if text == EMPTY_CONTENT_WARNING:
            return ""
        raise Refused(text)
    first, last = int(header["first"]), int(header["last"])
    if "truncated mid-line" in header["rest"]:
        raise Refused(
            f"line {first} alone is longer than a page and cannot be read; go on behind it at offset {first}",
            offset=first,
        )
    body = text[header.end() + 1 :]
    if "truncated due to size" in header["rest"] or body.count("\n") > last - first + 1:
        raise Refused(
            f"the page was cut after line {last} because of its size; nothing of it was returned: "
            f"go on at offset {first - 1} with a limit of {last - first + 1} or less",
            offset=first - 1,
            limit=last - first + 1,
        )
    return body
