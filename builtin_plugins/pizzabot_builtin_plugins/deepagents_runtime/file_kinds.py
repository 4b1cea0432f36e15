"""What a file is by its name: text, an image that some models see, or something else."""

from __future__ import annotations

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
"""Images that models are shown, by extension."""

_BINARY = frozenset(
    [
        ".aac",
        ".aiff",
        ".avi",
        ".doc",
        ".docx",
        ".flac",
        ".gz",
        ".heic",
        ".heif",
        ".ico",
        ".mov",
        ".mp3",
        ".mp4",
        ".mpeg",
        ".mpg",
        ".odt",
        ".ogg",
        ".pdf",
        ".ppt",
        ".pptx",
        ".tar",
        ".wav",
        ".webm",
        ".wmv",
        ".xls",
        ".xlsx",
        ".zip",
        ".m4a",
        ".mkv",
        ".flv",
        ".3gpp",
    ]
)
"""Extensions after which DeepAgents shows a file as media, or which are never text."""


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    return f".{name.rpartition('.')[2].lower()}" if "." in name else ""


def image_type(path: str) -> str | None:
    return IMAGES.get(_extension(path))


def is_text_name(path: str) -> bool:
    """Whether the name does not say that it is something else."""
    extension = _extension(path)
    return extension not in IMAGES and extension not in _BINARY
