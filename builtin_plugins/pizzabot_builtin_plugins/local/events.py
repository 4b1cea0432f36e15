"""Server-sent events of a chat completion: bounded lines in, JSON objects out."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

MAX_LINE_BYTES = 1_048_576
"""One event is a token or a piece of a tool call; a longer line is not this protocol."""


class MalformedEventError(ValueError):
    """A line that is too long or not JSON."""


async def completions(chunks: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
    """The objects of `data:` lines until `[DONE]`; comments and other fields are skipped.

    Raises `MalformedEventError`; ends without error where the stream does (the caller knows whether it was complete).
    """
    async for line in _lines(chunks):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        try:
            event = json.loads(data)
        except ValueError as error:
            raise MalformedEventError("an event is not JSON") from error
        if not isinstance(event, dict):
            raise MalformedEventError("an event is not an object")
        yield event


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
        if len(rest) > MAX_LINE_BYTES:
            raise MalformedEventError(f"an event is longer than {MAX_LINE_BYTES} bytes")
    if rest:
        yield rest
