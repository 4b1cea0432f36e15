"""Real servers for real clients, with the plugins of the wire tests and an address that outlives them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conversations"))
sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
sys.path.insert(0, str(Path(__file__).parent))

from gates import Gates
from places import Place
from proxy import Proxy
from servers import running_server

from pizzabot.testing.plugins import install_plugin

pytest.register_assert_rewrite("frame_rules", "js_checks", "scenarios", "turns")

HERE = Path(__file__).parent


@pytest.fixture
def server(tmp_path):
    with running_server(tmp_path / "server") as started:
        yield started


@pytest.fixture(scope="session")
def wire_plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugins of the fault tests and of these, found by discovery."""
    folder = tmp_path_factory.mktemp("site")
    for name, source in (("faults", HERE.parent / "faults" / "fault_plugin.py"), ("ask", HERE / "ask_plugin.py")):
        install_plugin(folder, f"pizzabot_{name}", source.read_text("utf-8"), requires=["pizzabot-host"])
    return folder


@contextmanager
def opened_place(folder: Path, plugins: Path) -> Iterator[Place]:
    with Gates() as gates:
        path = os.pathsep.join(filter(None, (str(plugins), os.environ.get("PYTHONPATH"))))
        environ = {"PYTHONPATH": path, "FAULT_GATES": str(gates.port)}
        config = '[runtime]\nuse = "team"\n'
        with running_server(folder, config=config, environ=environ) as server, Proxy(server.http) as proxy:
            yield Place(server, proxy, gates)


@pytest.fixture
def place(tmp_path: Path, wire_plugins: Path) -> Iterator[Place]:
    """A server of the test's own, that may be killed."""
    with opened_place(tmp_path / "server", wire_plugins) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_place(tmp_path_factory: pytest.TempPathFactory, wire_plugins: Path) -> Iterator[Place]:
    """A server for all tests that only talk on a thread of their own; nobody may kill it."""
    with opened_place(tmp_path_factory.mktemp("shared") / "server", wire_plugins) as opened:
        yield opened
