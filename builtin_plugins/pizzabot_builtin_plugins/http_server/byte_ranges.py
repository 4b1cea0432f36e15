"""A whole content or one range of its bytes: `Range`, `If-Range`, `If-None-Match` (RFC 9110 §13 and §14)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What goes out. `status` is 200, 206, 304 or 416; the last two have no body."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The headers of a request; None where it has none."""

    range: str | None = None
    if_range: str | None = None
    if_none_match: str | None = None


@dataclass(frozen=True, kw_only=True)
class Span:
    """Which bytes go out: from `start` up to `end`, none with status 304 and 416."""

    status: int
    start: int
    end: int
    headers: Mapping[str, str]


def part_of(text: str, wanted: Conditions) -> Part:
    """The text in UTF-8, or the bytes of it that are wanted. It hashes them all: megabytes belong in a thread."""
    whole = text.encode("utf-8", "replace")
    span = span_of(len(whole), hashlib.sha256(whole).hexdigest(), wanted)
    return Part(status=span.status, body=whole[span.start : span.end], headers=span.headers)


def span_of(size: int, tag: str, wanted: Conditions) -> Span:
    """What is wanted of something of `size` bytes; `tag` is its ETag without quotes.

    Several ranges, and what is no range of bytes, are answered with the whole, as the RFC lets a server do.
    """
    etag = f'"{tag}"'
    headers = {"etag": etag, "accept-ranges": "bytes"}
    if wanted.if_none_match is not None and _has(wanted.if_none_match, etag):
        return Span(status=304, start=0, end=0, headers=headers)
    asked = _RANGE.fullmatch((wanted.range or "").strip())
    first, last = asked.groups() if asked is not None else ("", "")
    if not _is_range(first, last) or wanted.if_range not in (None, etag):
        return Span(status=200, start=0, end=size, headers=headers)
    span = _span(first, last, size)
    if span is None:
        return Span(status=416, start=0, end=0, headers={**headers, "content-range": f"bytes */{size}"})
    start, end = span
    headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    return Span(status=206, start=start, end=end, headers=headers)


def _is_range(first: str, last: str) -> bool:
    if not first:
        return bool(last)
    return not last or int(first) <= int(last)


def _span(first: str, last: str, size: int) -> tuple[int, int] | None:
    """Start and end, None where nothing of the text lies in it."""
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    return (start, end) if start < end else None


def _has(listed: str, etag: str) -> bool:
    names = (name.strip().removeprefix("W/") for name in listed.split(","))
    return any(name in ("*", etag) for name in names)
