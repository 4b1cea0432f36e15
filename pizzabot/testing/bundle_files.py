"""Bundles for tests: a folder, or a ZIP, made of a manifest and files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pizzabot_hookspecs.bundles import MANIFEST


def bundle_files(manifest: Mapping[str, object], files: Mapping[str, str | bytes] = {}) -> dict[str, bytes]:
    """The files of a bundle by path, its manifest first."""
    told = {MANIFEST: json.dumps(manifest, indent=2), **files}
    return {path: content.encode() if isinstance(content, str) else content for path, content in told.items()}


def write_bundle(folder: Path, manifest: Mapping[str, object], files: Mapping[str, str | bytes] = {}) -> Path:
    """The same in a folder, which is returned."""
    for path, content in bundle_files(manifest, files).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def zip_of(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return packed.getvalue()
