"""Identity, health, status, models, plugins (spec/01 §3, §9, §10). Imported by `serve` in a worker thread."""

from __future__ import annotations

from typing import Any

from litestar import Response, get  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253

from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, flag, json_answer
from pizzabot_hookspecs.host import Health


def system_routes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @get("/", summary="Who answers here: service, protocol and API version")
    async def identity() -> Response[Any]:
        return json_answer(host.identity())

    @get("/ping", summary="Health: 200 Healthy or HealthyBusy, 503 Unhealthy; never needs the token")
    async def ping() -> Response[Any]:
        health = host.health()
        return json_answer({"status": health.value}, status=503 if health is Health.UNHEALTHY else 200)

    @get("/status", summary="Model, providers, runtime, storage and transports")
    async def status(request: AnyRequest) -> Response[Any]:
        return json_answer(await host.status(caller=caller_of(request)))

    @get(
        "/models",
        operation_class=documented(query={"refresh": "1: ask the providers again"}),
        summary="Models of every provider; `refresh=1` asks the providers again",
    )
    async def models(request: AnyRequest) -> Response[Any]:
        return json_answer(await host.models(caller=caller_of(request), refresh=flag(request, "refresh")))

    @get("/plugins", summary="Every Python plugin and every bundle with its state, or why it is not loaded")
    async def plugins(request: AnyRequest) -> Response[Any]:
        return json_answer(host.plugins(caller=caller_of(request)))

    return [identity, ping, status, models, plugins]
