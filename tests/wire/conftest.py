"""Real servers for real clients; the servers are those of the conversation tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conversations"))

from servers import running_server


@pytest.fixture
def server(tmp_path):
    with running_server(tmp_path / "server") as started:
        yield started
