"""Paths of a thread's files in an address: each segment is percent-decoded once, so that `%41` can be a name."""

from __future__ import annotations

import re
from urllib.parse import unquote

from pizzabot_builtin_plugins.http_server.services import AnyRequest
from pizzabot_hookspecs import InvalidRequest

_FILE = re.compile(rb"/threads/[^/]+/(?:artifacts|artifact-versions|runs/[^/]+/changes)(/.+)")


def file_path(request: AnyRequest) -> str:
    """The path that the address ends with, as the client meant it, whatever a framework makes of addresses.

    Raises `InvalidRequest` `invalid_path` for what is not UTF-8.
    """
    found = _FILE.fullmatch(bytes(request.scope.get("raw_path") or b""))
    try:
        return unquote(found[1].decode("ascii"), errors="strict") if found is not None else "/"
    except UnicodeDecodeError:
        problem = "must be UTF-8, each byte that is not a letter, a digit or one of . _ ~ - percent-encoded"
        raise InvalidRequest("invalid_path", f"`path` {problem}", fields={"path": problem}) from None
