"""The HTTP transport: offer `http`, Litestar on uvicorn, LangGraph's streaming protocol (design/wire.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.http_server.settings import HttpSettings
    from pizzabot_hookspecs.transports import Transport


def _create(context: Context, settings: HttpSettings) -> Transport:
    from pizzabot_builtin_plugins.http_server.transport import HttpTransport

    return HttpTransport(context, settings)


@hookimpl
def pizzabot_transports() -> list[Offer[Transport]]:
    from pizzabot_builtin_plugins.http_server.settings import HttpSettings

    summary = "HTTP with server-sent events: LangGraph's SDKs, our page and our command line talk to it"
    return [Offer(name="http", summary=summary, create=_create, settings=HttpSettings)]
