"""Virtual environments for the tests of packaging: real ones, made by `venv`, filled by `pip`, without a network.

Dependencies are those of the environment that runs the tests, found behind the new one's own packages.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = {
    "bundle-weather": "pizzabot_weather",
    "materializer-openapi": "pizzabot_openapi",
    "provider-parrot": "pizzabot_parrot",
    "runtime-replay": "pizzabot_replay",
    "skill-source-handbook": "pizzabot_handbook",
    "storage-audit": "pizzabot_storage_audit",
    "tool-notes": "pizzabot_notes",
    "transport-lines": "pizzabot_lines",
}
"""Folder -> the package in it."""
SECONDS = 120


@dataclass(frozen=True)
class Environment:
    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Environment:
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        environment = cls(folder)
        below = [path for path in site.getsitepackages() if Path(path).is_dir()]
        lines = [f"import site; site.addsitedir({path!r})" for path in below]
        (environment.packages / "below.pth").write_text("\n".join(lines))
        return environment

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        return next((self.folder / "lib").glob("python*/site-packages"))

    def command(self, name: str) -> Path:
        return self.folder / "bin" / name

    def install(self, *what: str | Path) -> None:
        """What pip is given, built with the tools that are here. `--no-deps`: the dependencies are there already."""
        pip = (sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check", "--quiet")
        run(*pip, "install", "--no-deps", "--no-build-isolation", "--no-index", *what)


def run(*command: str | Path, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> str:
    """What the command printed; fails with everything it said when its exit code is not 0."""
    done = attempt(*command, cwd=cwd, environ=environ)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def attempt(
    *command: str | Path, cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean_environ() | dict(environ or {}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def clean_environ() -> dict[str, str]:
    """This process's environment without what would tell pizzabot, Python or pytest to do something else."""
    foreign = ("PIZZABOT", "PYTHON", "PYTEST", "MYPY", "OPENAI_", "OLLAMA_", "XDG_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign) and name != "PORT"}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}
