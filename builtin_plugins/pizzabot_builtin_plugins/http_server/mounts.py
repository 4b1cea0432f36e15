"""Applications of plugins under their prefixes, and the last layer: which application a path belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pizzabot_builtin_plugins.http_server.asgi import SOCKET_PATH, Receive, Send, send_error
from pizzabot_builtin_plugins.http_server.call_paths import with_call_encoded
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.http_routes import AsgiApp, HttpRoutes, Scope

CORE_SEGMENTS = frozenset(
    {
        "",
        "attachments",
        "inbox",
        "local-folders",
        "memories",
        "models",
        "ping",
        "plugins",
        "schema",
        "settings",
        "skills",
        "status",
        "threads",
        "tools",
        "ws",
    }
)
"""First segments that core routes have; no plugin may take one."""

_PREFIX = re.compile(r"(/[A-Za-z0-9_~@:-][A-Za-z0-9._~@:-]*)+")


class Mounts:
    """What plugins add, the longest prefix first. A bad or taken one is left out and logged: `http.mount_refused`."""

    def __init__(self, routes: Sequence[HttpRoutes], logger: Logger) -> None:
        taken: dict[str, AsgiApp] = {}
        for entry in routes:
            reason = _fault(entry.prefix, taken)
            if reason:
                name = f"{type(entry).__module__}.{type(entry).__qualname__}"
                logger.error("http.mount_refused", routes=name, prefix=entry.prefix, reason=reason)
            else:
                taken[entry.prefix] = entry.application
        self._longest_first = sorted(taken.items(), key=lambda item: -len(item[0]))

    @property
    def prefixes(self) -> tuple[str, ...]:
        return tuple(prefix for prefix, _ in self._longest_first)

    def covers(self, path: str) -> bool:
        return self.find(path) is not None

    def find(self, path: str) -> tuple[str, AsgiApp] | None:
        for prefix, application in self._longest_first:
            if path == prefix or path.startswith(f"{prefix}/"):
                return prefix, application
        return None


def _fault(prefix: str, taken: dict[str, AsgiApp]) -> str | None:
    if not _PREFIX.fullmatch(prefix):
        return "a prefix is /segment or /segment/segment, without a slash at the end"
    segment = prefix.split("/")[1]
    if segment in CORE_SEGMENTS:
        return f"/{segment} belongs to the core routes"
    if prefix in taken:
        return "another plugin has this prefix"
    return None


class Kinds:
    """Which application: a WebSocket has its own, behind the same gates for Host and Origin."""

    def __init__(self, *, http: AsgiApp, websocket: AsgiApp) -> None:
        self._http = http
        self._websocket = websocket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._websocket if scope["type"] == "websocket" else self._http)(scope, receive, send)


class Router:
    """Refuses paths that mean different things to different readers, then calls the mounted or the core application.

    A mounted application gets the whole `path` and its prefix as `root_path`, as the ASGI specification has it.
    """

    def __init__(self, core: AsgiApp, mounts: Mounts) -> None:
        self._core = core
        self._mounts = mounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = with_call_encoded(scope)
        if not _is_plain(scope):
            detail = "an id or a path must not hold an encoded slash, `.`, `..`, a backslash or a control character"
            await send_error(send, 400, "invalid_path", detail)
            return
        found = self._mounts.find(scope["path"])
        if found:
            prefix, application = found
            await application({**scope, "root_path": scope.get("root_path", "") + prefix}, receive, send)
            return
        if scope["path"] == SOCKET_PATH:
            detail = f"{SOCKET_PATH} is a WebSocket; open it as one"
            await send_error(send, 426, "upgrade_required", detail, headers=[(b"upgrade", b"websocket")])
            return
        # The server itself drops the body of an answer to HEAD.
        core_scope = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        await self._core(core_scope, receive, send)


def _is_plain(scope: Scope) -> bool:
    raw = bytes(scope.get("raw_path") or b"").lower()
    if b"%2f" in raw or b"%5c" in raw:
        return False
    path: str = scope["path"]
    segments = path.split("/")[1:]
    inner_empty = "" in segments[:-1]
    return not inner_empty and not any(_is_bad(segment) for segment in segments)


def _is_bad(segment: str) -> bool:
    return segment in (".", "..") or "\\" in segment or any(ord(c) < 32 or ord(c) == 127 for c in segment)
