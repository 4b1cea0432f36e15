"""Files of the host's as answers: one range or all of it, under its own name, never as something that runs here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from urllib.parse import quote

from pizzabot_builtin_plugins.http_server.byte_ranges import Conditions, span_of
from pizzabot_builtin_plugins.http_server.downloads import Download, Outgoing
from pizzabot_builtin_plugins.http_server.json_bodies import encode
from pizzabot_builtin_plugins.http_server.services import AnyRequest, Services
from pizzabot_hookspecs.host_files import StoredFile

REVALIDATED = "private, no-cache"
IMMUTABLE = "private, max-age=31536000, immutable"


def stored_file(
    services: Services, request: AnyRequest, get: Callable[[], Awaitable[StoredFile]], *, cache: str = REVALIDATED
) -> Download:
    """An ASGI application. `get` raises what is answered as an error."""
    wanted = Conditions(
        range=request.headers.get("range"),
        if_range=request.headers.get("if-range"),
        if_none_match=request.headers.get("if-none-match"),
    )

    async def make() -> Outgoing:
        return _outgoing(await get(), wanted, cache)

    return Download(
        make=make,
        logger=services.logger,
        redact=services.redact,
        write_seconds=services.settings.limits.write_seconds,
    )


def _outgoing(file: StoredFile, wanted: Conditions, cache: str) -> Outgoing:
    span = span_of(file.size, file.tag, wanted)
    headers = {**span.headers, "cache-control": cache, "x-content-type-options": "nosniff"}
    if span.status == 304:
        return Outgoing(status=304, headers=headers, size=0, chunks=None)
    if span.status == 416:
        return _unsatisfiable(file.size, headers)
    size = span.end - span.start
    headers |= {
        "content-type": _with_charset(file.media_type),
        "content-length": str(size),
        "content-disposition": disposition(file.name, inline=file.inline),
    }
    if not file.inline:
        headers["content-security-policy"] = "sandbox; default-src 'none'"  # should something show it all the same
    return Outgoing(status=span.status, headers=headers, size=size, chunks=file.opened(span.start, span.end))


def _unsatisfiable(size: int, headers: Mapping[str, str]) -> Outgoing:
    detail = f"the file has {size} bytes; ask for a range that begins in it"
    body = encode({"error": "range_not_satisfiable", "detail": detail})

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield body

    told = {**headers, "content-type": "application/json", "content-length": str(len(body))}
    return Outgoing(status=416, headers=told, size=len(body), chunks=chunks())


def disposition(name: str, *, inline: bool) -> str:
    """With an ASCII name for old readers and the name itself for the rest (RFC 6266, RFC 5987)."""
    ascii_name = "".join(one if one.isascii() and one.isprintable() and one not in '"\\/%' else "_" for one in name)
    encoded = quote(name.encode("utf-8", "replace"), safe="")
    return f"{'inline' if inline else 'attachment'}; filename=\"{ascii_name}\"; filename*=UTF-8''{encoded}"


def _with_charset(media_type: str) -> str:
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
