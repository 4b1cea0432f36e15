"""The real command in a real process, with nothing of this machine's configuration around it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        return self.err.splitlines()[-1] if self.err else ""


class Command:
    """Runs `pizzabot` in `folder`; `home` has its user configuration and data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.home = folder / "home"
        self.folder.mkdir()
        self.home.mkdir()

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        xdg = {"XDG_CONFIG_HOME": str(self.home / "config"), "XDG_DATA_HOME": str(self.home / "data")}
        keyring = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        return {**kept, **xdg, **keyring, "HOME": str(self.home), "PYTHONWARNINGS": "error", **variables}

    def __call__(self, *words: str, input: str = "", **variables: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "pizzabot", *words],
            cwd=self.folder,
            env=self.environment(**variables),
            input=input,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def write(self, text: str) -> Path:
        path = self.folder / "pizzabot.toml"
        path.write_text(text)
        return path


@pytest.fixture
def pizzabot(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def plugin_folder(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes an installed plugin `name` without pip; the folder belongs into PYTHONPATH."""

    def write(name: str, source: str) -> Path:
        folder = tmp_path / "site"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{name}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pizzabot]\n{name} = {name}\n")
        return folder

    return write
