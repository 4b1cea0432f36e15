"""Installs a GGUF file of one's own: from a path, or from a URL."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from pizzabot_builtin_plugins.local.gguf import MAGIC, read_header
from pizzabot_builtin_plugins.local.library import Library, checked_name
from pizzabot_builtin_plugins.local.progress import Progress
from pizzabot_builtin_plugins.local.workplace import check_room, workplace
from pizzabot_hookspecs import Conflict, InvalidRequest, TooLarge, Unavailable

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 32_000_000_000
"""The largest file that is fetched, unless another limit is given."""

MAX_REDIRECTS = 5
CONNECT_SECONDS = 15.0
SILENCE_SECONDS = 60.0
_CHUNK_BYTES = 1024 * 1024


async def install_path(source: Path, library: Library, *, name: str | None = None, link: bool = False) -> Path:
    """Copy (or link to) the GGUF file `source`. Raises `InvalidRequest` `not_a_model`, `Conflict` `model_exists`."""
    source = await asyncio.to_thread(_checked, source)
    target = _free(library, name or source.name)
    if link:
        library.folder.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
        return target
    async with workplace(library.folder, target.stem) as work:
        check_room(library.folder, source.stat().st_size)
        await asyncio.to_thread(_copy, source, work / "weights.gguf")
        (work / "weights.gguf").replace(target)
    return target


async def install_url(
    url: str, library: Library, progress: Progress, *,
    name: str | None = None, sha256: str | None = None, max_bytes: int = MAX_BYTES,
) -> Path:  # fmt: skip
    """Fetch a GGUF file over https (http from this machine only), at most `max_bytes`.

    Raises `InvalidRequest` (`invalid_url`, `not_a_model`, `wrong_sha256`), `TooLarge` `model_too_large`, `Conflict`
    `model_exists`, `Unavailable` (`weights_unavailable`, `disk_full`).
    """
    _check_address(url)
    target = _free(library, name or Path(urlsplit(url).path).name)
    async with workplace(library.folder, target.stem) as work:
        unpacked = work / "weights.gguf"
        digest = await _fetch(url, unpacked, progress, max_bytes)
        if sha256 is not None and digest != sha256.lower():
            raise InvalidRequest("wrong_sha256", f"the file at {shown_address(url)} has SHA-256 {digest}, not {sha256}")
        await asyncio.to_thread(_check, unpacked)
        unpacked.replace(target)
    return target


def shown_address(url: str) -> str:
    """The URL without user, password and query: those may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _free(library: Library, name: str) -> Path:
    target = library.path_of(checked_name(name))
    if target.exists() or target.is_symlink():
        raise Conflict(
            "model_exists",
            f"a model {target.stem!r} is installed already; choose another name with --name, or remove it first: "
            f"`pizzabot models remove {target.stem}`",
        )
    return target


def _checked(source: Path) -> Path:
    source = source.expanduser().absolute()
    _check(source)
    return source


def _check(path: Path) -> None:
    header = read_header(path)
    if header.architecture is None:
        raise InvalidRequest("not_a_model", f"{path} holds no language model: it does not say its architecture")
    if header.parts > 1:
        raise InvalidRequest(
            "not_a_model",
            f"{path} is one of {header.parts} parts. Use them where they lie, by the path of the first: local:{path}",
        )


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


async def _fetch(url: str, target: Path, progress: Progress, max_bytes: int) -> str:
    import httpx

    timeout = httpx.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS)
    try:
        async with httpx.AsyncClient(timeout=timeout, follow_redirects=False) as client:
            for _ in range(MAX_REDIRECTS + 1):
                async with client.stream("GET", url) as response:
                    if response.is_redirect:
                        url = urljoin(url, response.headers.get("location", ""))
                        _check_address(url)
                        continue
                    return await _save(response, url, target, progress, max_bytes)
    except httpx.InvalidURL as error:
        raise InvalidRequest("invalid_url", f"{shown_address(url)} is not a usable address: {error}") from error
    except (httpx.HTTPError, OSError) as error:
        raise Unavailable(
            "weights_unavailable",
            f"{shown_address(url)} cannot be fetched: {type(error).__name__} {error}. Check the network and try again, "
            "or fetch the file yourself: `pizzabot models install PATH`",
        ) from error
    raise InvalidRequest("invalid_url", f"{shown_address(url)}: more than {MAX_REDIRECTS} redirects")


async def _save(response: httpx.Response, url: str, target: Path, progress: Progress, max_bytes: int) -> str:
    if response.status_code != 200:
        raise Unavailable("weights_unavailable", f"{shown_address(url)} answers with HTTP {response.status_code}")
    announced = response.headers.get("content-length", "")
    total = int(announced) if announced.isdecimal() and "content-encoding" not in response.headers else None
    if total is not None:
        _check_size(total, url, max_bytes)
        check_room(target.parent, total)
    digest, done = hashlib.sha256(), 0
    with target.open("wb") as out:
        async for chunk in response.aiter_bytes(_CHUNK_BYTES):
            if done == 0 and not chunk.startswith(MAGIC):
                raise InvalidRequest(
                    "not_a_model", f"{shown_address(url)} is not a GGUF file (it does not begin with GGUF)"
                )
            done += len(chunk)
            _check_size(done, url, max_bytes)
            await asyncio.to_thread(_take, chunk, digest, out)
            progress(done, total)
    if total is not None and done != total:
        raise Unavailable("weights_unavailable", f"{shown_address(url)} ended after {done} of {total} bytes; try again")
    return digest.hexdigest()


def _take(chunk: bytes, digest: hashlib._Hash, out: object) -> None:
    digest.update(chunk)
    out.write(chunk)  # type: ignore[attr-defined]


def _check_size(size: int, url: str, max_bytes: int) -> None:
    if size > max_bytes:
        raise TooLarge(
            "model_too_large",
            f"{shown_address(url)} has {size / 1e9:.1f} GB or more, the limit is {max_bytes / 1e9:.1f} GB; "
            "raise it with --max-gb",
        )


def _check_address(url: str) -> None:
    """https from anywhere, http from loopback only: on the way weights could be swapped for a file that attacks us."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        loopback = (
            host == "localhost" or (host.replace(".", "").isdigit() and ip_address(host).is_loopback) or host == "::1"
        )
    except ValueError as error:
        raise InvalidRequest("invalid_url", f"not a usable address: {error}") from error
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
        raise InvalidRequest(
            "invalid_url", f"{shown_address(url)}: only https addresses are fetched (http from this machine alone)"
        )


def is_url(source: str) -> bool:
    return "://" in source


def is_file_path(source: str) -> bool:
    """A path is what has a separator or the suffix; a bare word is a known model's name."""
    return os.sep in source or source.startswith("~") or source.endswith(".gguf")
