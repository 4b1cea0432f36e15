"""Kind `transports`: how clients reach the host. Those listed in `[transports] use` act; the built-in is `http`."""

from __future__ import annotations

from typing import Protocol

from pizzabot_hookspecs.offers import Offer, hookspec


class Transport(Protocol):
    """Parses, authorises, validates and streams; every decision is the Host's (`context.host`).

    The host calls `bind` first, then loads what is heavy, then runs `serve` as a task until it is cancelled.
    """

    @property
    def address(self) -> str:
        """Where clients find it, for people: `http://127.0.0.1:8080`. Known after `bind`."""
        ...

    async def bind(self) -> None:
        """Take the address. Raises `Conflict` `port_in_use` or `NotPermitted` with the way out; serves nothing yet."""
        ...

    async def serve(self) -> None:
        """Serve until cancelled; then stop accepting, end open streams and return within 5 s."""
        ...


@hookspec
def pizzabot_transports() -> list[Offer[Transport]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the transports this plugin has; `[transports] use` lists them."""
