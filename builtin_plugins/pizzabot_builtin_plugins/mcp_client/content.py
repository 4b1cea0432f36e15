"""What a tool of a server answered, as blocks that every model takes: text and images, the rest told in text.

An MCP result can hold sound, links, files and kinds that are not invented yet. A block that a model's API does not know
would fail this turn and each later one of the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pizzabot_builtin_plugins.mcp_client.settings import MAX_IMAGE_CHARACTERS, MAX_IMAGES

IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})

_NAMED = 300


class Result(Protocol):
    """`tools/call`'s answer as it came."""

    content: list[Any]
    structuredContent: Any  # noqa: N815 - the protocol's
    isError: bool  # noqa: N815


@dataclass
class Answer:
    """`blocks` for the model, at least one; `artifact` for the host: structured content, and links as sources."""

    blocks: list[dict[str, Any]]
    artifact: dict[str, Any] | None


def read_result(result: Result, *, limit: int) -> Answer:
    """`result` with at most `limit` characters of text; what is cut is said. Never raises for what a server sends."""
    reading = _Reading(limit)
    for block in result.content:
        reading.block(block if isinstance(block, Mapping) else {"type": type(block).__name__})
    structured = result.structuredContent
    if structured is not None:
        text = json.dumps(structured, ensure_ascii=False, default=str)
        if not reading.blocks:
            reading.text(text)
        if len(text) > limit:
            structured = None
    reading.say_what_is_missing()
    artifact: dict[str, Any] = {} if structured is None else {"structured_content": structured}
    if reading.sources:
        artifact |= {"type": "sources", "sources": reading.sources}
    return Answer(reading.blocks or [_text("(no output)")], artifact or None)


@dataclass
class _Reading:
    limit: int
    blocks: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, str]] = field(default_factory=list)
    cut: int = 0
    images: int = 0
    images_left_out: int = 0

    def block(self, block: Mapping[str, Any]) -> None:
        kind = str(block.get("type"))[:_NAMED]
        if kind == "text":
            self.text(_string(block, "text"))
        elif kind == "image":
            self.image(_string(block, "data"), _string(block, "mimeType"))
        elif kind == "resource_link":
            self.link(block)
        elif kind == "resource" and isinstance(block.get("resource"), Mapping):
            self.resource(block["resource"])
        else:
            self.text(f"[a block of the type {kind!r} is left out: it cannot be shown to a model]")

    def text(self, text: str) -> None:
        shown = text[: self.limit]
        self.limit -= len(shown)
        self.cut += len(text) - len(shown)
        if shown:
            self.blocks.append(_text(shown.encode("utf-8", "replace").decode("utf-8")))

    def image(self, data: str, media_type: str) -> None:
        if media_type not in IMAGES:
            self.text(f"[an image of the type {media_type[:_NAMED]!r} is left out]")
        elif self.images >= MAX_IMAGES or not 0 < len(data) <= MAX_IMAGE_CHARACTERS:
            self.images_left_out += 1
        else:
            self.images += 1
            self.blocks.append({"type": "image", "base64": data, "mime_type": media_type})

    def link(self, block: Mapping[str, Any]) -> None:
        uri = _string(block, "uri")
        title = _string(block, "title") or _string(block, "name") or uri
        description = _string(block, "description")
        self.text(f"[{title}]({uri})" + (f": {description}" if description else ""))
        self.source(title, uri, description)

    def resource(self, resource: Mapping[str, Any]) -> None:
        uri, media_type = _string(resource, "uri"), _string(resource, "mimeType")
        text, blob = _string(resource, "text"), _string(resource, "blob")
        if text:
            self.text(text)
        elif blob and media_type in IMAGES:
            self.image(blob, media_type)
        elif blob:
            self.text(f"[the file {uri} ({media_type or 'of an unknown type'}) is left out: it is not text]")
        self.source(_string(resource, "title") or _string(resource, "name") or uri, uri, text)

    def source(self, title: str, uri: str, excerpt: str) -> None:
        if uri:
            self.sources.append({"title": title[:_NAMED], "url": uri, "excerpt": excerpt[:_NAMED]})

    def say_what_is_missing(self) -> None:
        if self.cut:
            self.blocks.append(_text(f"[the result is cut here: {self.cut:,} more characters are not shown]"))
        if self.images_left_out:
            self.blocks.append(_text(f"[{self.images_left_out} images are left out: too many or too large]"))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _string(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""
