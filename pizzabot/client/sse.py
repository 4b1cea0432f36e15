"""Server-sent events, as far as the protocol uses them: `data:` lines up to an empty line, and comments."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import Any

from pizzabot.client.errors import StreamCutError

MAX_FRAME_BYTES = 16_000_000
"""The largest frame that is taken in; a `values` frame holds a whole conversation."""


async def frames(
    pieces: AsyncIterable[bytes], *, limit: int = MAX_FRAME_BYTES
) -> AsyncGenerator[Mapping[str, Any] | None, None]:
    """The JSON objects of a stream, and None for a comment, which shows that the server is alive.

    Raises `StreamCutError` `bad_frame` for a frame that is too large or malformed. An unfinished one is dropped.
    """
    rest = bytearray()
    data: list[bytes] = []
    held = 0
    async for piece in pieces:
        rest += piece
        *lines, last = bytes(rest).split(b"\n") if b"\n" in piece else [bytes(rest)]
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
                held += len(line)
            elif line.startswith(b":"):
                yield None
            elif not line and data:
                if (frame := _object(b"\n".join(data))) is not None:
                    yield frame
                data, held = [], 0
        if lines:
            rest = bytearray(last)
        if held + len(rest) > limit:
            raise StreamCutError("bad_frame", f"the server sends an event of more than {limit} bytes")


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as cause:
        raise StreamCutError("bad_frame", f"the server sends an event that is not JSON: {cause}") from cause
    return value if isinstance(value, dict) else None
