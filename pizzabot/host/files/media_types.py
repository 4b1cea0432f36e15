"""Media types by a file's name: what is text and what is not (spec/04 §1.3)."""

from __future__ import annotations

from pizzabot.host.files.text_search import is_text

OCTETS = "application/octet-stream"
PLAIN = "text/plain"

BINARY_TYPES = {
    "aac": "audio/aac",
    "aiff": "audio/aiff",
    "avi": "video/x-msvideo",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "flac": "audio/flac",
    "gif": "image/gif",
    "gz": "application/gzip",
    "heic": "image/heic",
    "heif": "image/heif",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "mpg": "video/mpeg",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "tar": "application/x-tar",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "wmv": "video/x-ms-wmv",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "zip": "application/zip",
}
"""Kept as bytes, whatever is in them."""

TEXT_TYPES = {
    "css": "text/css",
    "csv": "text/csv",
    "htm": "text/html",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "svg": "image/svg+xml",
    "tsv": "text/tab-separated-values",
    "xml": "application/xml",
}
"""Text that has a type of its own; every other is `text/plain`."""


def extension_of(name: str) -> str:
    """The ending of a name, in lower case and without its dot; empty where there is none."""
    _, dot, extension = name.rpartition("/")[2].rpartition(".")
    return extension.lower() if dot else ""


def media_type(name: str, content: bytes | None = None) -> str:
    """The type of a file of this name (a path will do). With `content`, text that is not UTF-8 is `OCTETS`."""
    extension = extension_of(name)
    if extension in BINARY_TYPES:
        return BINARY_TYPES[extension]
    if content is not None and not is_text(content):
        return OCTETS
    return TEXT_TYPES.get(extension, PLAIN)


def is_binary_name(name: str) -> bool:
    """Whether the name alone says that the file is not text."""
    return extension_of(name) in BINARY_TYPES
