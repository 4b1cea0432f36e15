"""Reads folders as the built-in reads them."""

import asyncio

import pytest

from pizzabot_builtin_plugins.bundles.source import Loaded
from pizzabot_hookspecs.bundles import BundlePlace, LoadRequest


@pytest.fixture
def load(tmp_path):
    """The bundles of `tmp_path/plugins`, or of other folders, in order."""
    loaded = Loaded()

    def read(*folders, generated=None, host_version="1.2.0"):
        places = [BundlePlace(path=folder) for folder in folders or [tmp_path / "plugins"]]
        request = LoadRequest(places=places, generated=generated or {}, host_version=host_version)
        return list(asyncio.run(loaded.load(request)))

    return read
