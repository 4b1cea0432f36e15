"""`.mcp.json` as a document: read leniently, changed in one entry, everything else kept as it was written.

    {"mcpServers": {"files": {"command": "npx", "args": ["-y", "a-server"]}}}

A map of servers without `mcpServers` around it is read, too, and stays one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.wire import JsonValue

SERVERS = "mcpServers"
MAX_BYTES = 4 * 1024 * 1024
"""Of the file."""
MAX_ENTRIES = 500
"""Of the file; it is refused whole with more."""


class Document:
    """What the file says. `servers` maps ids to entries of any shape; `twice` are ids that stand in it twice."""

    def __init__(self, whole: dict[str, Any], servers: dict[str, Any], twice: frozenset[str], place: str) -> None:
        self._whole = whole
        self._place = place
        self.servers = servers
        self.twice = twice

    @classmethod
    def parse(cls, raw: bytes, *, place: str) -> Document:
        """Raises `InvalidRequest` `invalid_mcp_file` with line and column; an empty file has no servers."""
        if len(raw) > MAX_BYTES:
            raise _unreadable(place, f"it has {len(raw):,} bytes, more than {MAX_BYTES:,}")
        try:
            text = raw.decode("utf-8-sig")
            pairs = json.loads(text, object_pairs_hook=_Pairs) if text.strip() else _Pairs([])
        except UnicodeDecodeError as error:
            raise _unreadable(place, f"it is not UTF-8 at byte {error.start}") from error
        except json.JSONDecodeError as error:
            raise _unreadable(place, f"line {error.lineno}, column {error.colno}: {error.msg}") from error
        except (RecursionError, ValueError) as error:
            raise _unreadable(place, f"it cannot be read: {type(error).__name__}") from error
        if not isinstance(pairs, _Pairs):
            raise _unreadable(place, "it has to be an object")
        servers = pairs.get(SERVERS, pairs)
        if not isinstance(servers, _Pairs):
            raise _unreadable(place, f'"{SERVERS}" has to be an object')
        if len(servers) > MAX_ENTRIES:
            raise _unreadable(place, f"it has {len(servers)} servers, more than {MAX_ENTRIES}")
        if SERVERS not in pairs and not pairs:
            pairs[SERVERS] = servers = _Pairs([])
        return cls(pairs, servers, servers.twice, place)

    def put(self, server_id: str, entry: Mapping[str, JsonValue]) -> None:
        self.servers[server_id] = dict(entry)

    def remove(self, server_id: str) -> bool:
        return self.servers.pop(server_id, None) is not None

    def render(self) -> bytes:
        return (json.dumps(self._whole, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")

    def refuse_twice(self) -> None:
        """Writing would drop one of the two without a word."""
        if self.twice:
            raise _unreadable(self._place, f'"{min(self.twice)}" stands in it twice')


class _Pairs(dict[str, Any]):
    """An object that knows which of its keys were written twice."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = (
            frozenset(name for name in self if names.count(name) > 1) if len(names) > len(self) else frozenset()
        )


def _unreadable(place: str, reason: str) -> InvalidRequest:
    return InvalidRequest("invalid_mcp_file", f"{place} cannot be used: {reason}")
