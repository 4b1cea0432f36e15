"""A version of a file as clients read it (docs/use/protocol.md), and whether a browser may show it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pizzabot.host.files.media_types import OCTETS
from pizzabot.host.workspace.place import Author
from pizzabot_hookspecs.file_storage import FileVersion

UPLOADS = "/uploads"
"""Where people's files are put."""

_ACTIVE = frozenset({"text/html", "image/svg+xml", "application/xml", "text/xml", "application/xhtml+xml"})
_INLINE = frozenset({"application/pdf", "application/json"})
_KINDS = {"application/pdf": "pdf", "application/json": "text", "text/html": "html", "image/svg+xml": "svg"}


def artifact_row(version: FileVersion) -> dict[str, Any]:
    return {
        "path": version.path,
        "version": version.version,
        "sha256": version.sha256,
        "size": version.size,
        "mediaType": version.media_type,
        "kind": kind_of(version.media_type),
        "author": version.author,
        "runId": version.run_id,
        "presented": version.author == Author.AGENT and not version.path.startswith(f"{UPLOADS}/"),
        "updatedAt": datetime.fromtimestamp(version.created_at, UTC).isoformat(),
    }


def version_row(version: FileVersion) -> dict[str, Any]:
    """One of the versions of a path: also which turn it is of, and whether it says that the file is gone."""
    return {**artifact_row(version), "turnId": version.turn_id, "deleted": version.sha256 is None}


def kind_of(media_type: str) -> str:
    """How it can be looked at: text, html, svg, image, pdf, audio, video, other."""
    first = media_type.partition("/")[0]
    known = first if first in ("text", "image", "audio", "video") else "other"
    return _KINDS.get(media_type, "text" if media_type in _ACTIVE else known)


def shown_inline(media_type: str) -> bool:
    """Not what could run script on the server's own origin, and nothing of an unknown kind (statement 61)."""
    if media_type in _ACTIVE or media_type == OCTETS:
        return False
    return media_type in _INLINE or media_type.partition("/")[0] in ("text", "image", "audio", "video")
