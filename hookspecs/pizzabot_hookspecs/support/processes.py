"""Child processes that leave nothing behind: own process group, TERM then KILL, gone with their parent.

start             a child in its own session with pipes and an allow-listed environment
running           the same for the length of a block: at its end, and with this process, the child and all it
                  started are gone
exited            wait for the child, whoever else holds its pipes
terminate_group   TERM, patience, KILL, reap: the child and whatever it started in its group (durable-runs rule 8)
die_with_parent   called in a child: the kernel kills it when its parent dies (Linux)
Tail              the last bytes of a stream, drained for as long as it flows

POSIX only (architecture §7).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pizzabot_hookspecs.support import guard
from pizzabot_hookspecs.support.guard import die_with_parent

__all__ = [
    "INHERITED",
    "PATIENCE_SECONDS",
    "Tail",
    "clean_environment",
    "die_with_parent",
    "exited",
    "running",
    "start",
    "terminate_group",
]

INHERITED = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "SYSTEMROOT", "TERM", "TMPDIR", "TZ", "USER"}
)
"""Variables that a child gets from this process, besides `LC_*`. Nothing else: the rest may hold secrets."""

PATIENCE_SECONDS = 2.0
"""Between TERM and KILL (durable-runs rule 8)."""

REAP_SECONDS = 5.0
"""How long a killed group may take to disappear; longer means uninterruptible I/O, which nobody can end."""

_LAST_WORDS_SECONDS = 0.5
_POLL_SECONDS = 0.02
_CHUNK_BYTES = 8192
_PROC = Path("/proc")


def clean_environment(
    extra: Mapping[str, str] | None = None, *, inherit: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """`INHERITED` and `LC_*` of `environ`, what `inherit` names beside them, then `extra` over both."""
    allowed = INHERITED.union(inherit)
    kept = {name: value for name, value in environ.items() if name in allowed or name.startswith("LC_")}
    return {**kept, **(extra or {})}


async def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bool = True,
    guarded: bool = False,
) -> Process:
    """Start `command` in a session and process group of its own, stdout and stderr on pipes, stdin on one if asked for.

    `env` is the whole environment (default `clean_environment()`). `guarded` puts `guard` before a command that does
    not call `die_with_parent` itself: when this process dies, killed ones included, the whole group goes with it. `pid`
    is the guard's then, and the group's number; `terminate`, `kill` and `send_signal` reach the group. Raises OSError
    when it cannot be started; a guarded one exits with 127. Drain both pipes (`Tail`): a full pipe stops the child.
    """
    words = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command] if guarded else list(command)
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=PIPE if stdin else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=dict(clean_environment() if env is None else env),
        cwd=cwd,
        start_new_session=True,
    )
    return _Guarded.of(process) if guarded else process


class _Guarded(Process):
    """A guard and its command: what is sent to one of them alone would miss the other."""

    @classmethod
    def of(cls, process: Process) -> _Guarded:
        return cls(process._transport, process._protocol, process._loop)  # type: ignore[attr-defined]  # noqa: SLF001

    def send_signal(self, signal: int) -> None:
        if self.returncode is None:
            _signal_group(self.pid, signal)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@asynccontextmanager
async def running(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bool = True,
    guarded: bool = True,
) -> AsyncIterator[Process]:
    """A child for the length of a block; takes what `start` takes, and is `guarded` unless told otherwise.

    However the block ends, a stop of the run that cancels the tool inside it included, the child's group gets TERM,
    after `PATIENCE_SECONDS` KILL, and the block is left when all are gone (durable-runs rule 8). Where this process is
    killed, they are killed with it: a `retry` after a crash must not meet them::

        async with running(["rg", "--json", word], cwd=folder, stdin=False) as process:
            out, _ = await process.communicate()
    """
    process = await start(command, env=env, cwd=cwd, stdin=stdin, guarded=guarded)
    try:
        yield process
    finally:
        await terminate_group(process)


async def terminate_group(process: Process, patience: float = PATIENCE_SECONDS) -> int | None:
    """End the child and its group: TERM, up to `patience` seconds, KILL; returns its exit code once all are gone.

    Safe to call twice and for a child that has ended: processes that it left in its group are ended too. None where the
    kernel did not let go of it within `REAP_SECONDS`. `process` must come from `start`, which made the group its own.
    A cancelled call kills at once: nothing outlives it. The pipes are closed; who drains them gets the rest first.
    """
    try:
        if _group_taken(process):
            _signal_group(process.pid, signal.SIGTERM)
            if not await _gone(process, patience):
                _kill(process)
                await _gone(process, REAP_SECONDS)
        await _close_pipes(process)
    except asyncio.CancelledError:
        _kill(process)
        raise
    return process.returncode


async def exited(process: Process) -> int:
    """Wait for the child alone: `Process.wait` may also wait for whoever holds its pipes (python/cpython#119710)."""
    while process.returncode is None:  # noqa: ASYNC110  asyncio has no event for this one
        await asyncio.sleep(_POLL_SECONDS)
    return process.returncode


async def _close_pipes(process: Process) -> None:
    transport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001  no public way: undrained pipes never close
    deadline = asyncio.get_running_loop().time() + _LAST_WORDS_SECONDS
    pipes = [pipe for number in (1, 2) if (pipe := transport.get_pipe_transport(number)) is not None]
    while not all(pipe.is_closing() for pipe in pipes) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS / 4)
    transport.close()
    await asyncio.sleep(0)  # one turn of the loop, in which the closing is carried out


def _kill(process: Process) -> None:
    if _group_taken(process):
        _signal_group(process.pid, signal.SIGKILL)


async def _gone(process: Process, seconds: float) -> bool:
    """Wait until the child was reaped and nothing in its group runs; False when `seconds` were not enough."""
    deadline = asyncio.get_running_loop().time() + seconds
    while _group_taken(process):
        if process.returncode is not None and not await asyncio.to_thread(_any_runs, process.pid):
            return True
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _group_taken(process: Process) -> bool:
    """Whether the child is unreaped or its group still has members, zombies included.

    A group's number stays taken while it has a member, so after the child was reaped a process with that very number is
    a stranger that got it since: never signalled.
    """
    if process.returncode is None:
        return True
    try:
        os.getpgid(process.pid)
    except ProcessLookupError:
        return _group_answers(process.pid)
    return False


def _group_answers(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS refuses where only zombies are left
        return False
    return True


def _any_runs(group: int) -> bool:
    """Whether a member is more than a zombie: in a container, whose first process reaps nobody, those stay for ever."""
    if not _PROC.joinpath("self", "stat").exists():
        return _group_answers(group)
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError):
                state, _, member_of, *_ = (
                    entry.joinpath("stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                )
                if int(member_of) == group and state not in {"Z", "X"}:
                    return True
    return False


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class Tail:
    """The last `limit` bytes of what was read from a stream, as text; each whole line goes to `sink`.

    A line longer than `limit` reaches the sink cut to its end.
    """

    def __init__(self, limit: int = 65_536, *, sink: Callable[[str], None] | None = None) -> None:
        self._limit = limit
        self._sink = sink
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._line = b""

    async def drain(self, stream: asyncio.StreamReader) -> None:
        """Read until end of file. Run it as a task for as long as the child lives."""
        while chunk := await stream.read(_CHUNK_BYTES):
            self.feed(chunk)
        if self._line:
            self._say(self._line)
            self._line = b""

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())
        if self._sink is not None:
            *lines, rest = (self._line + chunk).split(b"\n")
            self._line = rest[-self._limit :]
            for line in lines:
                self._say(line)

    def _say(self, line: bytes) -> None:
        if self._sink is not None:
            self._sink(line[-self._limit :].decode("utf-8", "replace").rstrip())

    @property
    def text(self) -> str:
        return b"".join(self._chunks)[-self._limit :].decode("utf-8", "replace")
