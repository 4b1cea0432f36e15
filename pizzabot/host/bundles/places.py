"""The folders in which bundles are looked for, in the order in which they win (spec/04 §6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pizzabot.settings import Settings
from pizzabot_hookspecs.bundles import BundlePlace

INSTALLED = "plugins"
"""Of the data root: bundles that are installed, and may be deleted again."""


def places_of(settings: Settings, brought: Sequence[Path]) -> tuple[BundlePlace, ...]:
    """Shipped, `brought` by Python plugins, installed, external."""
    chosen = settings.bundles
    external = [settings.bundles_folder] if chosen.external is None else [_path(path) for path in chosen.external]
    return (
        *(BundlePlace(path=_path(path)) for path in chosen.shipped),
        *(BundlePlace(path=path, single=True) for path in brought),
        BundlePlace(path=settings.data_root / INSTALLED, removable=True),
        *(BundlePlace(path=path) for path in external),
    )


def _path(path: str) -> Path:
    return Path(path).expanduser()
