"""What an entry of `.mcp.json` says, checked (spec/04 §7): stdio, HTTP or SSE, with references still in place.

    {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${TOKEN}"}, "cwd": "data"}
    {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}

Beside these `enabled` (default true), and `hide`, patterns of tools that are not shown to anybody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from pizzabot.host.mcp.limits import MAX_ENTRY_CHARACTERS, MAX_ENTRY_STRINGS, MAX_HIDE_PATTERNS
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.mcp_clients import McpTransport
from pizzabot_hookspecs.wire import JsonValue

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[^=\x00]{1,128}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_TYPES = {
    "stdio": McpTransport.STDIO,
    "http": McpTransport.HTTP,
    "streamable-http": McpTransport.HTTP,
    "streamable_http": McpTransport.HTTP,
    "streamableHttp": McpTransport.HTTP,
    "sse": McpTransport.SSE,
}
_WEBSOCKET = frozenset({"ws", "websocket"})


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A checked entry. Texts may hold `${NAME}` references."""

    transport: McpTransport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    enabled: bool = True
    hide: tuple[str, ...] = ()

    def hides(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.hide)


def check_id(server_id: object) -> str:
    """Raises `InvalidRequest` `invalid_id`. The id is part of tools' names and references."""
    if isinstance(server_id, str) and _ID.fullmatch(server_id):
        return server_id
    problem = "must be 1 to 64 of the characters A-Z a-z 0-9 . _ -, the first a letter or a digit"
    raise InvalidRequest("invalid_id", f"an MCP server's id {problem}, not {_shown(server_id)}", fields={"id": problem})


def read_entry(entry: object) -> Entry:
    """Raises `InvalidRequest` `invalid` with the wrong fields. Keys that are unknown are passed over."""
    if not isinstance(entry, Mapping):
        raise _wrong({"entry": f"must be an object, not {_shown(entry)}"})
    problems: dict[str, str] = {}
    transport = _transport(entry, problems)
    reader = _Reader(entry, problems)
    common = {"enabled": reader.flag("enabled"), "hide": reader.texts("hide", most=MAX_HIDE_PATTERNS)}
    if transport is McpTransport.STDIO:
        read = Entry(
            transport=transport,
            command=reader.text("command") or "",
            args=reader.texts("args"),
            env=reader.pairs("env", _VARIABLE),
            cwd=reader.text("cwd", needed=False),
            **common,  # type: ignore[arg-type]  # mypy sees one type for both
        )
    else:
        read = Entry(transport=transport, url=reader.url(), headers=reader.pairs("headers", _HEADER), **common)  # type: ignore[arg-type]
    if problems:
        raise _wrong(problems)
    return read


def _transport(entry: Mapping[str, JsonValue], problems: dict[str, str]) -> McpTransport:
    kind = entry.get("type", entry.get("transport"))
    if kind is None:
        return McpTransport.HTTP if "url" in entry and "command" not in entry else McpTransport.STDIO
    if isinstance(kind, str) and kind in _TYPES:
        return _TYPES[kind]
    if isinstance(kind, str) and kind.lower() in _WEBSOCKET:
        problems["type"] = "WebSocket is not supported: use http or sse"
    else:
        problems["type"] = f"must be stdio, http or sse, not {_shown(kind)}"
    return McpTransport.HTTP if "url" in entry else McpTransport.STDIO


class _Reader:
    """Reads fields and notes what is wrong with them, all of it."""

    def __init__(self, entry: Mapping[str, JsonValue], problems: dict[str, str]) -> None:
        self._entry = entry
        self._problems = problems

    def text(self, key: str, *, needed: bool = True) -> str | None:
        value = self._entry.get(key)
        if value is None and not needed:
            return None
        if not isinstance(value, str) or not value.strip():
            self._problems[key] = "must be a text that is not empty"
            return None
        return self._checked(key, value)

    def texts(self, key: str, *, most: int = MAX_ENTRY_STRINGS) -> tuple[str, ...]:
        value = self._entry.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value) or len(value) > most:
            self._problems[key] = f"must be a list of at most {most} texts"
            return ()
        return tuple(self._checked(f"{key}.{number}", str(item)) for number, item in enumerate(value))

    def pairs(self, key: str, names: re.Pattern[str]) -> Mapping[str, str]:
        value = self._entry.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping) or len(value) > MAX_ENTRY_STRINGS:
            self._problems[key] = f"must be an object of at most {MAX_ENTRY_STRINGS} texts"
            return {}
        pairs: dict[str, str] = {}
        for name, item in value.items():
            place = f"{key}.{str(name)[:64]}"
            if not isinstance(name, str) or not names.fullmatch(name):
                self._problems[place] = "is no name that can be used there"
            elif not isinstance(item, str):
                self._problems[place] = "must be a text"
            elif key == "headers" and not (item.isprintable() and item.isascii()):
                self._problems[place] = "must be of printable ASCII characters"
            else:
                pairs[name] = self._checked(place, item)
        return pairs

    def flag(self, key: str) -> bool:
        value = self._entry.get(key)
        if value is None or isinstance(value, bool):
            return value is not False
        self._problems[key] = "must be true or false"
        return False

    def url(self) -> str:
        value = self.text("url") or ""
        if value and not _is_web_address(value):
            self._problems["url"] = "must be an http or https address"
        return value

    def _checked(self, place: str, value: str) -> str:
        if len(value) > MAX_ENTRY_CHARACTERS:
            self._problems[place] = f"must not be longer than {MAX_ENTRY_CHARACTERS:,} characters"
        elif "\0" in value:
            self._problems[place] = "must not hold a NUL character"
        return value


def _is_web_address(value: str) -> bool:
    if value.startswith("${"):
        return True  # all of it is a reference: checked when it is resolved
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not any(map(str.isspace, value))


def _wrong(problems: Mapping[str, str]) -> InvalidRequest:
    told = "; ".join(f"`{field}` {problem}" for field, problem in problems.items())
    return InvalidRequest("invalid", f"the entry of the MCP server is wrong: {told}"[:1_000], fields=problems)


def _shown(value: object) -> str:
    return repr(value)[:80]
