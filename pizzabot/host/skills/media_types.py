"""Which files of a bundle are text and which are bytes, by their name's ending and by what they hold (spec/04 §1.3)."""

from __future__ import annotations

from pizzabot.host.files import media_types

TEXT = media_types.PLAIN
BYTES = media_types.OCTETS
BINARY_TYPES = frozenset(media_types.BINARY_TYPES.values()) | {BYTES}


def binary_type(path: str) -> str | None:
    """The media type of a file that is bytes by its name, None for one that is text."""
    return media_types.BINARY_TYPES.get(media_types.extension_of(path))


def is_binary_type(media_type: str) -> bool:
    """Whether content of that type comes as base64 even where nobody says so."""
    kind = media_type.split(";", maxsplit=1)[0].strip().lower()
    return kind in BINARY_TYPES or kind.startswith(("image/", "audio/", "video/"))
