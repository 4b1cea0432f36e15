"""One `python -m pizzabot …` that ends by itself: exit code, output, and the last line on standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60.0
"""A command that has not ended by then was meant to refuse and did not."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    code: int
    stdout: str
    stderr: str

    @property
    def last_line(self) -> str:
        """What the person reads last, without its `pizzabot: `. Fails where it is not one line of that form."""
        lines = self.stderr.rstrip("\n").split("\n")
        assert lines[-1].startswith("pizzabot: "), self.stderr
        assert "Traceback" not in self.stderr
        return lines[-1].removeprefix("pizzabot: ")


def clean_environment(folder: Path, environ: Mapping[str, str] = {}) -> dict[str, str]:
    """This process's environment without anything that configures pizzabot or a provider; `folder` is the home."""
    foreign = ("PIZZABOT", "OPENAI_", "OLLAMA_", "XDG_", "LANGSMITH_", "LANGCHAIN_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign) and name != "PORT"}
    return {**kept, "HOME": str(folder), **environ}


def pizzabot(
    folder: Path, *arguments: str, config: str | None = None, environ: Mapping[str, str] = {}, said: str = ""
) -> Ended:
    """Run it in `folder` to its end. `config` is the text of the pizzabot.toml there, which is found by its place."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (folder / "pizzabot.toml").write_text(config)
    ended = subprocess.run(
        [sys.executable, "-m", "pizzabot", *arguments],
        cwd=folder,
        env=clean_environment(folder, environ),
        input=said,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ended(code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)


def refused_start(
    folder: Path, *arguments: str, config: str | None = None, environ: Mapping[str, str] = {}
) -> tuple[int, str]:
    """Exit code and last line of a `pizzabot serve` that must not come up. Port and data root are the test's own."""
    own = [] if "--port" in arguments else ["--port", "0"]
    own += [] if "--data-root" in arguments else ["--data-root", str(folder / "data")]
    ended = pizzabot(folder, "serve", *own, *arguments, config=config, environ=environ)
    assert "listening" not in ended.stdout
    return ended.code, ended.last_line
