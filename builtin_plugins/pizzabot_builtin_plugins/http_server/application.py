"""The application: layers in the order in which a request meets them, around the core routes and the mounts.

Imported by `serve` in a worker thread, after the address was taken: this is where Litestar comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Request, Response  # noqa: TID253 - see above
from litestar.exceptions import HTTPException  # noqa: TID253

from pizzabot_builtin_plugins.http_server.access_log import RequestLog, unforeseen
from pizzabot_builtin_plugins.http_server.addresses import Doors
from pizzabot_builtin_plugins.http_server.asgi import REQUEST_ID, error_body, state
from pizzabot_builtin_plugins.http_server.bearer import BearerGate, BearerToken
from pizzabot_builtin_plugins.http_server.bodies import BodyLimit
from pizzabot_builtin_plugins.http_server.body_limits import BodyLimits
from pizzabot_builtin_plugins.http_server.errors import code_of, status_of
from pizzabot_builtin_plugins.http_server.gates import HostGate, OriginGate, RefusableSocket
from pizzabot_builtin_plugins.http_server.mounts import Kinds, Mounts, Router
from pizzabot_builtin_plugins.http_server.openapi import schema_routes
from pizzabot_builtin_plugins.http_server.routes_activity import activity_routes
from pizzabot_builtin_plugins.http_server.routes_artifacts import artifact_routes
from pizzabot_builtin_plugins.http_server.routes_attachments import attachment_routes
from pizzabot_builtin_plugins.http_server.routes_branches import branch_routes
from pizzabot_builtin_plugins.http_server.routes_bundles import bundle_routes
from pizzabot_builtin_plugins.http_server.routes_folders import folder_routes
from pizzabot_builtin_plugins.http_server.routes_history import history_routes
from pizzabot_builtin_plugins.http_server.routes_mcp import mcp_routes
from pizzabot_builtin_plugins.http_server.routes_memories import memory_routes
from pizzabot_builtin_plugins.http_server.routes_runs import run_routes
from pizzabot_builtin_plugins.http_server.routes_settings import settings_routes
from pizzabot_builtin_plugins.http_server.routes_skills import skill_routes
from pizzabot_builtin_plugins.http_server.routes_system import system_routes
from pizzabot_builtin_plugins.http_server.routes_threads import thread_routes
from pizzabot_builtin_plugins.http_server.routes_transcript import transcript_routes
from pizzabot_builtin_plugins.http_server.services import Services, json_answer
from pizzabot_builtin_plugins.http_server.websocket.application import SocketApplication
from pizzabot_hookspecs import PizzabotError
from pizzabot_hookspecs.http_routes import AsgiApp, HttpRoutes


def build(services: Services, doors: Doors, routes: Sequence[HttpRoutes]) -> tuple[AsgiApp, Litestar, Mounts]:
    """The whole application, and the two parts of it whose routes can be enumerated."""
    core = core_application(services)
    mounts = Mounts(routes, services.logger)
    settings, logger = services.settings, services.logger
    token = settings.token.get_secret_value() if settings.token else None
    limits = settings.limits
    app: AsgiApp = Router(core, mounts)  # type: ignore[arg-type]  # Litestar's ASGI types are TypedDicts of its own
    app = BearerGate(app, token)
    app = RequestLog(app, logger)
    sizes = BodyLimits(json_bytes=limits.json_bytes, admits=BearerToken(token).admits)
    app = BodyLimit(app, limits=sizes, seconds=limits.body_seconds, is_mounted=mounts.covers, logger=logger)
    app = Kinds(http=app, websocket=SocketApplication(services, BearerToken(token)))
    app = OriginGate(app, doors, logger)
    app = HostGate(app, doors, logger)
    app = RefusableSocket(app)
    return app, core, mounts


def core_application(services: Services) -> Litestar:
    handlers = [
        *system_routes(services),
        *thread_routes(services),
        *history_routes(services),
        *transcript_routes(services),
        *branch_routes(services),
        *activity_routes(services),
        *run_routes(services),
        *artifact_routes(services),
        *attachment_routes(services),
        *memory_routes(services),
        *settings_routes(services),
        *folder_routes(services),
        *skill_routes(services),
        *mcp_routes(services),
        *bundle_routes(services),
    ]
    return Litestar(
        route_handlers=[*handlers, *schema_routes(handlers, str(services.host.identity().get("version", "0")))],
        openapi_config=None,
        exception_handlers={
            PizzabotError: _Refusals(services).refused,
            HTTPException: _framework_refusal,
            Exception: _Refusals(services).unforeseen,
        },
        logging_config=None,
        debug=False,
        request_max_body_size=services.settings.limits.json_bytes,
    )


class _Refusals:
    def __init__(self, services: Services) -> None:
        self._services = services

    def refused(self, _: Request[Any, Any, Any], error: PizzabotError) -> Response[bytes]:
        body = error_body(error.code, self._services.redact(error.detail), error.fields)
        return json_answer(body, status=status_of(error))

    def unforeseen(self, request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        request_id = str(state(request.scope).get(REQUEST_ID, ""))  # type: ignore[arg-type]
        facts = {"request_id": request_id, "method": request.method, "path": request.scope["path"]}
        self._services.logger.error("http.request.failed", exc_info=error, **facts)
        return json_answer(error_body("internal_error", unforeseen(request_id)), status=500)


def _framework_refusal(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """Litestar's own 400, 404, 405, 413: `{error, detail, fields?}` like ours."""
    extra = error.extra if isinstance(error.extra, list) else []
    fields = {str(item.get("key")): str(item.get("message")) for item in extra if isinstance(item, dict)}
    body = error_body(code_of(error.status_code), error.detail, fields)
    return json_answer(body, status=error.status_code, headers=error.headers or {})
