"""Bytes of files by their SHA-256: `BlobFolder` keeps them, `Collector` removes those that no row names any more."""

from __future__ import annotations

from pizzabot.host.blobs.folder import Blob, BlobFolder

__all__ = ["Blob", "BlobFolder"]
