"""Real servers with the plugin of the fault tests, and the gates at which they can be held."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "host"))
sys.path.insert(0, str(Path(__file__).parents[1] / "conversations"))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parent))

from gates import Gates
from servers import Server, running_server

from pizzabot.testing.plugins import install_plugin

HERE = Path(__file__).parent
Serve = Callable[..., Server]


@pytest.fixture(scope="session")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed plugin, found by discovery and not by its path."""
    folder = tmp_path_factory.mktemp("site")
    source = (HERE / "fault_plugin.py").read_text("utf-8")
    install_plugin(folder, "pizzabot_faults", source, requires=["pizzabot-host"])
    return folder


@pytest.fixture
def gates() -> Iterator[Gates]:
    with Gates() as opened:
        yield opened


@pytest.fixture
def serve(tmp_path: Path, plugins: Path, gates: Gates) -> Iterator[Serve]:
    """Start a server with the plugin; `runtime` and `storage` choose among what it offers."""
    with ExitStack() as stack:

        def started(
            *, folder: Path | None = None, runtime: str = "team", storage: str = "sqlite", config: str = ""
        ) -> Server:
            text = f'[runtime]\nuse = "{runtime}"\n[storage]\nuse = "{storage}"\n{config}'
            path = os.pathsep.join(filter(None, (str(plugins), os.environ.get("PYTHONPATH"))))
            environ = {"PYTHONPATH": path, "FAULT_GATES": str(gates.port)}
            return stack.enter_context(running_server(folder or tmp_path / "server", config=text, environ=environ))

        yield started
