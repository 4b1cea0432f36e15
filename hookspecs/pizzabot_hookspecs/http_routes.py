"""Kind `http_routes`: further paths on the HTTP transport. All act; each is an ASGI application under a prefix."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

from pizzabot_hookspecs.offers import Offer, hookspec

Scope: TypeAlias = MutableMapping[str, Any]
AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[
    [Scope, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]
]


class HttpRoutes(Protocol):
    """One mounted application. The transport has done its Origin, Host, size and token checks before it is called."""

    @property
    def prefix(self) -> str:
        """The path below which it is mounted, `/hooks`; one plugin a prefix, never one of the core routes."""
        ...

    @property
    def application(self) -> AsgiApp: ...


@hookspec
def pizzabot_http_routes() -> list[Offer[HttpRoutes]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the applications to mount; a clash of prefixes is reported."""
