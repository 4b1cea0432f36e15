"""OpenAPI at /schema: one JSON document, built once; no page that would load scripts from elsewhere.

Imported by `serve` in a worker thread, after the address was taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Litestar, Response, get  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.openapi import OpenAPIConfig  # noqa: TID253
from litestar.openapi.plugins import JsonRenderPlugin  # noqa: TID253
from litestar.openapi.spec import Operation  # noqa: TID253

from pizzabot_builtin_plugins.http_server.json_bodies import encode

MEDIA_TYPE = "application/vnd.oai.openapi+json"


def documented(
    *,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
    answer: str | Sequence[str] = "application/json",
    form: Mapping[str, str] | None = None,
) -> type[Operation]:
    """An operation with the body and query it takes: handlers parse both themselves, for envelopes and for odd JSON.

    `query` maps a parameter to its description; `answer` is the media type of a success, or
    several. `form` maps the fields of a form that brings a file, which is the first of them, to their descriptions.
    """

    kinds = (answer,) if isinstance(answer, str) else answer

    class Documented(Operation):
        def to_schema(self) -> dict[str, Any]:
            operation = super().to_schema()
            if body is not None:
                operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": dict(body)}}}
            if form is not None:
                operation["requestBody"] = {
                    "required": True,
                    "content": {"multipart/form-data": {"schema": _form(form)}},
                }
            for name, description in (query or {}).items():
                parameter = {"name": name, "in": "query", "description": description, "schema": {"type": "string"}}
                operation.setdefault("parameters", []).append(parameter)
            for parameter in operation.get("parameters", ()):
                if parameter["schema"].get("format") == "uri":  # Litestar's word for a path of several segments
                    parameter["schema"] = {"type": "string"}
            for status, response in operation.get("responses", {}).items():
                if status.startswith("2"):
                    response["content"] = {kind: {} for kind in kinds}
            return operation

    return Documented


def _form(fields: Mapping[str, str]) -> dict[str, Any]:
    file = next(iter(fields))
    shapes: dict[str, Any] = {name: {"type": "string", "description": text} for name, text in fields.items()}
    shapes[file] |= {"format": "binary"}
    return {"type": "object", "required": [file], "properties": shapes}


def schema_routes(handlers: Sequence[HTTPRouteHandler], version: str) -> list[HTTPRouteHandler]:
    document = _document(handlers, version)

    @get(["/schema", "/schema/openapi.json"], summary="This document")
    async def schema() -> Response[bytes]:
        return Response(document, media_type=MEDIA_TYPE)

    return [schema]


def _document(handlers: Sequence[HTTPRouteHandler], version: str) -> bytes:
    config = OpenAPIConfig(title="pizzabot", version=version, render_plugins=[JsonRenderPlugin()])
    described = Litestar(route_handlers=list(handlers), openapi_config=config, logging_config=None)
    return encode(described.openapi_schema.to_schema())
