"""What may be attached: media types by what the browser says, then by the file's extension, and how large each may be.

They are those that models can be shown; text of any kind is shown as plain text under its own name (spec/03 §3).
"""

from __future__ import annotations

from enum import StrEnum

MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
"""Of any attachment."""
MAX_IMAGE_BYTES = 3_932_160
"""Of an image; models take no larger ones."""
MAX_DOCUMENT_BYTES = 4_718_592
"""Of everything else."""

PLAIN = "text/plain"


class Category(StrEnum):
    IMAGE = "image"
    DOCUMENT = "document"


IMAGE_TYPES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
DOCUMENT_TYPES = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "txt": PLAIN,
    "md": "text/markdown",
    "markdown": "text/markdown",
    "html": "text/html",
    "htm": "text/html",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_TEXT = """
json yaml yml log toml ini cfg conf env xml tsv ts tsx js jsx mjs cjs py rb go rs java kt c h cpp hpp cs php swift sh
bash zsh sql
"""
TEXT_EXTENSIONS = frozenset(_TEXT.split())
"""Kept as plain text."""

_CATEGORIES = dict.fromkeys(IMAGE_TYPES.values(), Category.IMAGE) | dict.fromkeys(
    DOCUMENT_TYPES.values(), Category.DOCUMENT
)
_CEILINGS = {Category.IMAGE: MAX_IMAGE_BYTES, Category.DOCUMENT: MAX_DOCUMENT_BYTES}


def type_of(filename: str, given: str | None) -> str | None:
    """The media type of an attachment; None for a kind that is not taken."""
    browser = (given or "").partition(";")[0].strip().lower()
    if browser in _CATEGORIES:
        return browser
    extension = filename.rpartition("/")[2].rpartition(".")[2].lower() if "." in filename else ""
    if extension in TEXT_EXTENSIONS:
        return PLAIN
    return IMAGE_TYPES.get(extension) or DOCUMENT_TYPES.get(extension)


def ceiling_of(media_type: str) -> int:
    """Bytes that an attachment of a type that is taken may have."""
    return _CEILINGS[_CATEGORIES[media_type]]


def can_be_shown(filename: str, size: int) -> bool:
    """Whether a file could be attached as it is."""
    kind = type_of(filename, None)
    return kind is not None and 0 < size <= ceiling_of(kind)
