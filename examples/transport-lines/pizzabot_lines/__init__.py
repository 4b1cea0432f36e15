"""A transport: lines of JSON over a Unix socket in the data root, or over a TCP port of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.transports import Transport


@hookimpl
def pizzabot_transports() -> list[Offer[Transport]]:
    from pizzabot_lines.settings import LinesSettings
    from pizzabot_lines.transport import create

    return [Offer(name="lines", summary="lines of JSON over a local socket", create=create, settings=LinesSettings)]
