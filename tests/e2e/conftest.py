"""The real command in processes of its own: what starts it, what speaks to it, and what plays its providers."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
for folder in (TESTS / "e2e", TESTS / "conversations", TESTS / "faults"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.fixture
def llama(tmp_path: Path) -> dict[str, str]:
    """The environment of a server whose `local:tiny` runs a scripted llama.cpp in a real child process."""
    from commands import clean_environment

    models = tmp_path / "models"
    models.mkdir()
    (models / "tiny.gguf").write_bytes(_tiny_gguf())
    scripted = TESTS / "unit" / "local" / "scripted"
    return clean_environment(tmp_path, {"PYTHONPATH": str(scripted), "PIZZABOT_MODELS_DIR": str(models)})


def _tiny_gguf() -> bytes:
    """The header of a model without tensors: enough for who reads headers, and the scripted one reads no more."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    pairs.append(text("llama.context_length") + struct.pack("<II", 4, 2048))
    tensor = text("output.weight") + struct.pack("<IQIQ", 1, 8, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor + bytes(32)
