"""Which bundle an archive holds: exactly one, all of it in one folder (spec/04 §5)."""

from __future__ import annotations

from pizzabot.host.skills.archives import ArchiveCaps, read_archive
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.bundles import MANIFEST

MAX_ARCHIVE_BYTES = 50 * 1024 * 1024
MAX_CONTENT_BYTES = 200 * 1024 * 1024
MAX_ENTRIES = 2048

_CAPS = ArchiveCaps(archive_bytes=MAX_ARCHIVE_BYTES, content_bytes=MAX_CONTENT_BYTES, entries=MAX_ENTRIES)


def files_of_archive(archive: bytes) -> dict[str, bytes]:
    """Its files by their path in the bundle. Blocking. Raises the codes of spec/04 §5."""
    files = read_archive(archive, _CAPS)
    found = [path for path in files if path == MANIFEST or path.endswith(f"/{MANIFEST}")]
    if len(found) != 1:
        raise InvalidRequest("invalid_bundle", f"the archive has {len(found)} {MANIFEST}; it has to have one")
    prefix = found[0].removesuffix(MANIFEST)
    outside = next((path for path in files if not path.startswith(prefix)), None)
    if outside is not None:
        raise InvalidRequest("invalid_bundle", f"{outside[:80]!r} is outside of the bundle's folder {prefix[:80]!r}")
    return {path.removeprefix(prefix): content for path, content in files.items()}
