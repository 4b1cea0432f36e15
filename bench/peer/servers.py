"""Both servers as processes of their own, each with an empty temporary folder, ended with all their children."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 8.0
_HERE = Path(__file__).parent
_SHARED = ("pizzabot_hookspecs", "pizzabot_builtin_plugins")
_NEEDED = "import langgraph_api, langgraph_runtime_inmem, langgraph_cli, deepagents, pluggy"
_CLOSED = "http://127.0.0.1:9"
"""A proxy where nobody listens: a look-up of a newer version or of usage statistics cannot leave the machine."""


def missing(python: Path) -> str | None:
    """Why `python` cannot run the peer, in one line with the way out; None where it can."""
    asked = subprocess.run([python, "-c", _NEEDED], check=False, capture_output=True, text=True, timeout=START_SECONDS)
    if asked.returncode == 0:
        return None
    cause = (asked.stderr.strip().splitlines() or ["it does not start"])[-1]
    return f'{python} cannot run langgraph dev ({cause}): pip install "pizzabot-host[bench]", or name --peer-python'


def versions(python: Path) -> str:
    """What the peer is, for the report."""
    names = ("langgraph-api", "langgraph-runtime-inmem", "langgraph", "deepagents")
    code = f"from importlib.metadata import version as v; print(', '.join(f'{{n}} {{v(n)}}' for n in {names!r}))"
    return subprocess.check_output([python, "-c", code], text=True, timeout=START_SECONDS).strip()


@contextmanager
def ours(*, model: str = "echo:echo") -> Iterator[int]:
    """`pizzabot serve` on SQLite with the echo model; its port."""
    with tempfile.TemporaryDirectory(prefix="bench-ours-") as temporary:
        folder, port = Path(temporary), _free_port()
        serve = [sys.executable, "-m", "pizzabot", "serve", "--port", str(port), "--data-root", str(folder / "data")]
        with _process([*serve, "--model", model], folder, _environment(XDG_CONFIG_HOME=temporary)) as process:
            url = f"http://127.0.0.1:{port}/status"
            _wait_for(process, url, lambda answer: json.loads(answer)["runtime"]["state"] == "ready")
            yield port


@contextmanager
def peer(python: Path, *, jobs: int) -> Iterator[int]:
    """`langgraph dev` with the same graph and `jobs` runs at once; its port. State and code lie in the folder."""
    with tempfile.TemporaryDirectory(prefix="bench-peer-") as temporary:
        folder = Path(temporary)
        for name in ("graph.py", "langgraph.json"):
            shutil.copy(_HERE / name, folder)
        for name in _SHARED:  # links, so that nothing else of this interpreter gets into the peer's
            (folder / name).symlink_to(_package(name), target_is_directory=True)
        port = _free_port()
        dev = [str(python), "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
        environment = _environment(
            PYTHONPATH=str(folder),
            LANGSMITH_TRACING="false",
            LANGGRAPH_CLI_NO_ANALYTICS="1",
            LANGGRAPH_NO_VERSION_CHECK="true",
        )
        with _process([*dev, "--n-jobs-per-worker", str(jobs)], folder, environment) as process:
            _wait_for(process, f"http://127.0.0.1:{port}/ok", lambda answer: b'"ok":true' in answer)
            yield port


def _package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _environment(**more: str) -> Mapping[str, str]:
    foreign = ("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "PIZZABOT_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _CLOSED)
    direct = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    return kept | proxies | direct | more


@contextmanager
def _process(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Started in a process group of its own, which is ended as a whole."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield process
        except BaseException:
            sys.stderr.write((folder / "log").read_text(errors="replace")[-2000:])
            raise
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


def _wait_for(process: subprocess.Popen[bytes], url: str, met: Callable[[bytes], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url, timeout=5) as answer:
            if met(answer.read()):
                return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} is not ready after {START_SECONDS:g} s (exit code {process.poll()})")
