"""Attachments: files that messages refer to by `attachment://<id>` (spec/01 §6, docs/use/protocol.md).

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from typing import IO, Any

from litestar import Response, delete, get, post  # noqa: TID253 - see above
from litestar.handlers import HTTPRouteHandler  # noqa: TID253
from litestar.params import FromPath  # noqa: TID253
from litestar.types import ASGIApp  # noqa: TID253

from pizzabot_builtin_plugins.http_server.openapi import documented
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services, caller_of, checked_id, json_answer
from pizzabot_builtin_plugins.http_server.stored_files import IMMUTABLE, stored_file
from pizzabot_builtin_plugins.http_server.streamed_forms import StreamedForm

MAX_ATTACHMENT_BODY_BYTES = 11 * 1024 * 1024
"""Of a form that brings an attachment: 10 MiB, and what is around them."""
_IN_MEMORY = 1024 * 1024
_PIECE = 256 * 1024


def attachment_routes(services: Services) -> list[HTTPRouteHandler]:
    host = services.host

    @post(
        "/attachments",
        request_max_body_size=None,
        operation_class=documented(form={"file": "the file", "thread_id": "the thread that it is for"}),
        summary="Keep a file for a message to refer to",
    )
    async def add_attachment(request: AnyRequest) -> Response[Any]:
        form = StreamedForm(request, MAX_ATTACHMENT_BODY_BYTES)
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
            try:
                await form.file()
                async for piece in form.content():
                    await _write(file, piece)
            finally:
                await form.close()
            thread = form.texts.get("thread_id")  # it may stand behind the file: so the form is read to its end first
            made = await host.attachments.add(
                _pieces(file),
                filename=form.filename,
                media_type=form.media_type,
                thread_id=checked_id(thread, "thread_id") if thread else None,
                caller=caller_of(request),
            )
        return json_answer(made, status=201)

    @get(
        "/attachments/{attachment_id:str}",
        operation_class=documented(answer="application/octet-stream"),
        summary="The attachment's bytes, or one range of them",
    )
    async def read_attachment(request: AnyRequest, attachment_id: FromPath[str]) -> ASGIApp:
        wanted = checked_id(attachment_id, "attachment_id")
        get_it = partial(host.attachments.get, wanted, caller=caller_of(request))
        return stored_file(services, request, get_it, cache=IMMUTABLE)  # type: ignore[return-value]  # see `export`

    @delete("/attachments/{attachment_id:str}", status_code=200, summary="There is no such attachment from now on")
    async def delete_attachment(request: AnyRequest, attachment_id: FromPath[str]) -> Response[Any]:
        wanted = checked_id(attachment_id, "attachment_id")
        return json_answer({"deleted": await host.attachments.delete(wanted, caller=caller_of(request))})

    return [add_attachment, read_attachment, delete_attachment]


async def _write(file: IO[bytes], piece: bytes) -> None:
    if file.tell() + len(piece) > _IN_MEMORY:
        await asyncio.to_thread(file.write, piece)
    else:
        file.write(piece)


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    file.seek(0)
    while piece := await asyncio.to_thread(file.read, _PIECE):
        yield piece
