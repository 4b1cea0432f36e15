"""A folder on `sys.path` that plugins are installed in, and the sources that several tests install."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pizzabot.kernel import PluginReport, Plugins
from pizzabot.testing.plugins import plugin_folder

OFFER = """
from pizzabot_hookspecs import Offer, hookimpl

@hookimpl
def pizzabot_{kind}():
    return [Offer(name="{name}", summary="a test's", create=lambda context, settings: "made by " + __name__)]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where `install_plugin` puts plugins for this test, found by the real discovery."""
    monkeypatch.delenv("PIZZABOT_NO_PLUGINS", raising=False)
    with plugin_folder(tmp_path / "site") as path:
        yield path


@pytest.fixture
def offering() -> Callable[..., str]:
    """The source of a plugin that offers one thing: `offering("parrot")`, `offering("sqlite", "storage_backends")`."""
    return lambda name, kind="model_providers": OFFER.format(name=name, kind=kind)


@pytest.fixture
def stock(folder: Path) -> dict[str, str]:
    """A table of one built-in, `sqlite-storage`, whose module lies in the folder without metadata."""
    (folder / "stock_storage.py").write_text(OFFER.format(name="sqlite", kind="storage_backends"))
    return {"sqlite-storage": "stock_storage"}


@pytest.fixture
def told() -> Callable[[Plugins, str], PluginReport]:
    """The one report of a plugin by its name."""

    def find(plugins: Plugins, name: str) -> PluginReport:
        (report,) = [report for report in plugins.report() if report.name == name]
        return report

    return find


@pytest.fixture
def context() -> Callable[..., object]:
    """Stands for the host's context: what the kernel hands on is the use's name and `inner`."""
    return lambda name, inner: SimpleNamespace(
        name=name, inner=inner, redact=lambda text: text.replace("s3cret", "[redacted]")
    )
