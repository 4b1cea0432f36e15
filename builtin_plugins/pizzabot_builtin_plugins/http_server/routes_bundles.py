"""Declarative bundles: read anew, run a materializer, install, delete (spec/01 §9); `GET /plugins` lists them.

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, delete, post  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253

from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, json_answer
from pizzabot_builtin_plugins.http_server.streamed_forms import StreamedForm

MAX_BUNDLE_ARCHIVE_BODY_BYTES = 51 * 1024 * 1024
"""Of a form that brings a bundle: 50 MiB, and what is around them."""


def bundle_routes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @post("/plugins/reload", status_code=200, summary="Read every bundle anew, and run what makes bundles by hand")
    async def reload_bundles(request: AnyRequest) -> Response[Any]:
        return json_answer(await host.bundles.reload(caller=caller_of(request)))

    @post(
        "/plugins/import",
        request_max_body_size=None,
        operation_class=documented(form={"file": "the ZIP"}),
        summary="Install a bundle out of a ZIP",
    )
    async def import_bundle(request: AnyRequest) -> Response[Any]:
        form = StreamedForm(request, MAX_BUNDLE_ARCHIVE_BODY_BYTES)
        try:
            await form.file()
            archive = b"".join([piece async for piece in form.content()])
        finally:
            await form.close()
        return json_answer(await host.bundles.import_archive(archive, caller=caller_of(request)), status=201)

    @post("/plugins/{name:str}/refresh", status_code=200, summary="Run the materializer of one bundle now")
    async def refresh_bundle(request: AnyRequest, name: FromPath[str]) -> Response[Any]:
        return json_answer(await host.bundles.refresh(name, caller=caller_of(request)))

    @delete("/plugins/{name:str}", status_code=200, summary="Remove an installed bundle and all that is kept for it")
    async def delete_bundle(request: AnyRequest, name: FromPath[str]) -> Response[Any]:
        return json_answer(await host.bundles.delete(name, caller=caller_of(request)))

    return [reload_bundles, import_bundle, refresh_bundle, delete_bundle]
