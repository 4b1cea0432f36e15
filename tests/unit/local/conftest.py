"""Tiny GGUF files, a recording logger, and a provider whose children run a scripted llama.cpp (`scripted/`)."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pizzabot_builtin_plugins.local.provider import LocalProvider
from pizzabot_builtin_plugins.local.settings import LocalSettings
from pizzabot_hookspecs import Context

SCRIPTED = Path(__file__).parent / "scripted"
PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(*, architecture: str | None = "llama", template: str | None = PLAIN_TEMPLATE, **numbers: int) -> bytes:
    """A header with a small vocabulary, and one tensor of 32 bytes."""
    pairs = [text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3) + text("a") + text("b") + text("c" * 5000)]
    pairs.append(text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 0, 0, 0))
    if architecture is not None:
        pairs.append(text("general.architecture") + struct.pack("<I", 8) + text(architecture))
        pairs.append(text("general.name") + struct.pack("<I", 8) + text("Tiny Model"))
    if template is not None:
        pairs.append(text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template))
    for key, number in numbers.items():
        pairs.append(text(key.replace("__", ".")) + struct.pack("<II", 4, number))
    tensor = text("output.weight") + struct.pack("<IQIQ", 1, 8, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor + bytes(32)


class Recorder:
    """A logger that keeps what it is told, and lets a test wait for a line of a child."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._waiting: list[tuple[str, asyncio.Event]] = []

    def _take(self, event: str, **facts: Any) -> None:
        self.events.append((event, facts))
        for words, seen in self._waiting:
            if words in str(facts):
                seen.set()

    debug = info = warning = error = exception = _take

    def lines(self) -> list[str]:
        return [facts["line"] for event, facts in self.events if event == "local.child"]

    def expect(self, words: str) -> asyncio.Event:
        seen = asyncio.Event()
        self._waiting.append((words, seen))
        return seen


class NoSecrets:
    def resolve(self, reference: object, /) -> str:
        raise AssertionError(reference)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def context(tmp_path: Path, recorder: Recorder) -> Context:
    return Context(
        name="local",
        data_root=tmp_path,
        logger=recorder,
        secrets=NoSecrets(),
        clock=time.time,
        redact=lambda text: text,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of models with one in it, `tiny`."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(gguf(llama__context_length=2048))
    return folder


@pytest.fixture
def provider(context: Context, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LocalProvider]:
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTED))

    def make(**settings: Any) -> LocalProvider:
        return LocalProvider(context, LocalSettings(models_dir=folder, **settings))

    return make


@pytest.fixture
def make_gguf() -> Callable[..., bytes]:
    return gguf
