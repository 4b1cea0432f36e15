"""A file that comes as `multipart/form-data`, handed on piece by piece: no more of it than that is in memory.

Imported by `serve` in a worker thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

from litestar.exceptions import InternalServerException  # noqa: TID253 - see above
from multipart import MultipartError, MultipartSegment, PushMultipartParser  # type: ignore[import-untyped]

from pizzabot_builtin_plugins.http_server.services import AnyRequest
from pizzabot_hookspecs import InvalidRequest, TooLarge

MAX_FORM_PARTS = 16
"""Fields of a form that brings a file."""
MAX_FIELD_BYTES = 4_096
"""Of a field of such a form that is text."""


@dataclass
class StreamedForm:
    """One file in the field `name`, and other fields as text. Read `content` to its end: only then is the form whole.

    `texts` has the fields that have come so far. Raises `InvalidRequest` `invalid_multipart`, `missing_file`;
    `TooLarge` `request_too_large` beyond `most` bytes in all.
    """

    request: AnyRequest
    most: int
    name: str = "file"
    texts: dict[str, str] = field(default_factory=dict)
    filename: str = ""
    media_type: str = ""

    def __post_init__(self) -> None:
        kind, options = self.request.content_type
        boundary = options.get("boundary", "")
        if kind != "multipart/form-data" or not boundary:
            raise _invalid("has to be multipart/form-data with a boundary")
        try:
            self._parser = PushMultipartParser(boundary, max_segment_count=MAX_FORM_PARTS, strict=True)
        except MultipartError as error:
            raise _invalid(f"cannot be read: {error}") from error
        self._events = self._parsed()

    async def file(self) -> None:
        """Until the file begins: then `filename` and `media_type` are the client's words for it."""
        async for event in self._events:
            if isinstance(event, MultipartSegment):
                if event.filename is not None and event.name == self.name:
                    self.filename, self.media_type = event.filename, event.content_type or ""
                    return
                await self._text(event)
        raise InvalidRequest(
            "missing_file", f"the form has no file in the field {self.name!r}", fields={self.name: "is missing"}
        )

    async def content(self) -> AsyncIterator[bytes]:
        """The file's bytes; then the rest of the form is looked at, which must hold no other file."""
        async for event in self._events:
            if event is None:
                break
            if not isinstance(event, MultipartSegment):
                yield bytes(event)
        async for event in self._events:
            if isinstance(event, MultipartSegment):
                await self._text(event)

    async def close(self) -> None:
        await self._events.aclose()

    async def _text(self, segment: MultipartSegment) -> None:
        if segment.filename is not None:
            raise _invalid(f"has another file in the field {segment.name!r}; send one file in the field {self.name!r}")
        value = b""
        async for event in self._events:
            if event is None:
                break
            value += bytes(event)
            if len(value) > MAX_FIELD_BYTES:
                raise _invalid(f"has more than {MAX_FIELD_BYTES} bytes in the field {segment.name!r}")
        self.texts[segment.name] = value.decode(errors="replace")

    async def _parsed(self) -> AsyncGenerator[MultipartSegment | bytearray | None, None]:
        size = 0
        try:
            async for piece in self.request.stream():
                size += len(piece)
                if size > self.most:
                    raise TooLarge("request_too_large", f"the body is larger than {self.most} bytes; send less at once")
                for event in self._parser.parse(piece):
                    yield event
            self._parser.close()
        except MultipartError as error:
            raise _invalid(f"is not valid multipart/form-data: {error}") from error
        except InternalServerException as error:  # the client has gone, or sends nothing any more
            raise _invalid("ended before the form did") from error


def _invalid(problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_multipart", f"the body {problem}")
