"""A real `pizzabot serve` in a process of its own, and what a test does with it: talk, stop, kill, start again."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 20.0
_LISTENING = re.compile(r"listening on (\S+)")


class Server:
    """One server on one data root. `address` changes with each start: the port is 0."""

    def __init__(self, folder: Path, *, python: str, arguments: tuple[str, ...], environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.data_root = folder / "data"
        self._command = [
            python,
            "-m",
            "pizzabot",
            "serve",
            "--port",
            "0",
            "--data-root",
            str(self.data_root),
            *arguments,
        ]
        self._environ = dict(environ)
        self._process: subprocess.Popen[str] | None = None
        self.addresses: tuple[str, ...] = ()
        self.printed = ""
        """Standard output of a server that has ended: everything after its address."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def http(self) -> str:
        return next(address for address in self.addresses if address.startswith("http"))

    def start(self) -> None:
        self._errors = (self.folder / "stderr.txt").open("a")
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=self._environ, cwd=self.folder
        )
        assert self._process.stdout is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self._process.stdout], [], [], 0.2)
            line = self._process.stdout.readline() if ready else ""
            if found := _LISTENING.search(line):
                self.addresses = tuple(line[found.start(1) :].strip().split(", "))
                return
            if self._process.poll() is not None:
                break
        raise AssertionError(f"the server did not start: {self.errors()}")

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """The signal and the exit code."""
        return self._end(number)

    def wait_for_line(self, words: str) -> str:
        """The next line of standard output that has `words`; those before it are passed over."""
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.printed += line
            if words in line:
                return line
        raise AssertionError(f"{words!r} was not printed: {self.printed}")

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        assert self.stop() == 0, self.errors()
        self.start()

    def errors(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None
        process.send_signal(number)
        assert process.stdout is not None
        try:
            process.wait(timeout=STOP_SECONDS)
        finally:
            process.kill()
            self.printed += process.stdout.read()
            process.stdout.close()
            process.wait()
            self._errors.close()
        return process.returncode

    def close(self) -> None:
        if self._process is not None:
            self.kill()


@contextmanager
def running_server(
    folder: Path,
    *,
    model: str = "echo:echo",
    python: str = sys.executable,
    config: str = "",
    environ: Mapping[str, str] = {},
) -> Iterator[Server]:
    """A started server; `config` is the text of its pizzabot.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pizzabot.toml").write_text(config)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PIZZABOT")}
    arguments = ("--config", str(folder / "pizzabot.toml"), "--model", model)
    server = Server(folder, python=python, arguments=arguments, environ={**clean, "HOME": str(folder), **environ})
    try:
        server.start()
        yield server
    finally:
        server.close()
