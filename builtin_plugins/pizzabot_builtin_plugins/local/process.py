"""One llama.cpp child: started, watched, asked whether it is well, and ended with everything it started."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pizzabot_hookspecs import Logger, Unavailable
from pizzabot_hookspecs.support.processes import Tail, clean_environment, exited, start, terminate_group

if TYPE_CHECKING:
    import httpx

COMMAND = (sys.executable, "-m", "pizzabot_builtin_plugins.local.child")
MAX_ANSWER_BYTES = 65_536
"""The one line a child says when it is ready; longer is not an answer."""

HEALTH_SECONDS = 5.0
INHERITED = (
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONPYCACHEPREFIX",
    "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """What to load and how. `context_size` is tokens of one conversation; there are `parallel` of them."""

    name: str
    path: str
    context_size: int
    parallel: int
    threads: int
    gpu_layers: int
    prompt_cache_mib: int


class ModelProcess:
    """A running child. Use `launch`; `client` speaks to it with its key and the base URL set."""

    def __init__(
        self, process: Process, client: httpx.AsyncClient, tail: Tail, drains: Sequence[asyncio.Task[None]]
    ) -> None:
        self.client = client
        self._process = process
        self._tail = tail
        self._drains = drains

    @classmethod
    async def launch(
        cls, launch: Launch, *, seconds: float, logger: Logger, command: Sequence[str] = COMMAND
    ) -> ModelProcess:
        """Start a child and wait until its model is loaded, at most `seconds`. Nothing is left when this raises.

        Raises `Unavailable` `model_unavailable` with llama.cpp's own last words.
        """
        key = secrets.token_urlsafe(32)
        process = await start(command, env=clean_environment(inherit=INHERITED))
        tail = Tail(sink=lambda line: logger.debug("local.child", model=launch.name, line=line.replace(key, "***")))
        assert process.stderr is not None  # noqa: S101  `start` gives all three pipes
        drain = asyncio.create_task(tail.drain(process.stderr))
        try:
            async with asyncio.timeout(seconds):
                url = await _handshake(process, launch, key)
        except BaseException as error:
            code = await terminate_group(process)
            await drain
            if isinstance(error, TimeoutError):
                raise _unavailable(launch, f"was not loaded within {seconds:g} s", tail) from error
            if isinstance(error, _NotReadyError):
                raise _unavailable(launch, str(error) or f"its process ended with {_exit_words(code)}", tail) from error
            raise
        assert process.stdout is not None  # noqa: S101
        logger.info("local.loaded", model=launch.name, pid=process.pid)
        drains = [drain, asyncio.create_task(Tail(0).drain(process.stdout))]
        return cls(process, _client(url, key), tail, drains)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @property
    def obituary(self) -> str:
        """How it ended, in words for a person."""
        return f"its process ended with {_exit_words(self._process.returncode)}"

    async def settle(self, seconds: float = 1.0) -> bool:
        """Whether it is alive, after waiting up to `seconds` for a death that a broken connection announces."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await exited(self._process)
        return self.alive

    async def healthy(self) -> bool:
        """Whether it answers `/health` within `HEALTH_SECONDS`."""
        import httpx

        if not self.alive:
            return False
        try:
            return (await self.client.get("/health", timeout=HEALTH_SECONDS)).status_code == 200
        except httpx.HTTPError:
            return False

    async def close(self) -> None:
        """End it: stdin closed and TERM, 2 s, KILL, reaped. Safe to call twice."""
        await self.client.aclose()
        await terminate_group(self._process)
        await asyncio.gather(*self._drains)


class _NotReadyError(Exception):
    """The child said that it cannot, or ended before it said anything (then the text is empty)."""


async def _handshake(process: Process, launch: Launch, key: str) -> str:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
    with suppress(ConnectionError):  # it died at once: the empty answer below says so
        process.stdin.write(json.dumps({**asdict(launch), "key": key, "parent": os.getpid()}).encode() + b"\n")
        await process.stdin.drain()
    try:
        line = await process.stdout.readuntil(b"\n")
        answer = json.loads(line[:MAX_ANSWER_BYTES])
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise _NotReadyError from error
    if not isinstance(answer, dict) or not str(answer.get("url", "")).startswith("http://127.0.0.1:"):
        raise _NotReadyError(
            f"llama.cpp cannot load it ({answer.get('error') if isinstance(answer, dict) else answer})"
        )
    return str(answer["url"])


def _client(url: str, key: str) -> httpx.AsyncClient:
    """No proxy, no certificates: it is loopback, and reading the certificate bundle would hold the loop for 20 ms."""
    import httpx

    return httpx.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {key}"},
        trust_env=False,
        verify=False,  # noqa: S501  plain http on loopback
        limits=httpx.Limits(max_connections=64, max_keepalive_connections=4),
    )


def _exit_words(code: int | None) -> str:
    if code is None:
        return "no exit code"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _unavailable(launch: Launch, what: str, tail: Tail) -> Unavailable:
    errors = [line for line in tail.text.splitlines() if " E " in line or "error" in line.lower()]
    said = f"; llama.cpp said: {errors[-1].strip()[:300]}" if errors else ""
    return Unavailable("model_unavailable", f"the local model {launch.name!r} ({launch.path}): {what}{said}")
