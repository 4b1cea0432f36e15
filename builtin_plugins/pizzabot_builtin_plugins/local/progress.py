"""How far a fetch is: a bar on a terminal, a line per tenth elsewhere, log events inside the server."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from pizzabot_hookspecs import Logger

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Progress(Protocol):
    def __call__(self, done: int, total: int | None, /) -> None:
        """`done` bytes of `total` (None: unknown) are there. Called many times a second; never raises."""
        ...


class _Tenths:
    """Tells when another tenth, or another 100 MB where the whole is unknown, is reached."""

    def __init__(self) -> None:
        self._last = -1

    def reached(self, done: int, total: int | None) -> bool:
        step = min(done, total) * 10 // total if total else done // 100_000_000
        if step <= self._last:
            return False
        self._last = step
        return True


class LoggedProgress:
    def __init__(self, logger: Logger, model: str) -> None:
        self._logger = logger
        self._model = model
        self._tenths = _Tenths()

    def __call__(self, done: int, total: int | None, /) -> None:
        if self._tenths.reached(done, total):
            told = {"progress": in_words(done, total)} | ({"fraction": round(done / total, 2)} if total else {})
            self._logger.info("local.fetching", model=self._model, **told)


class PlainProgress(AbstractContextManager["PlainProgress"]):
    """A line per tenth, for pipes and log files."""

    def __init__(self, title: str, stream: TextIO) -> None:
        self._title = title
        self._stream = stream
        self._tenths = _Tenths()

    def __call__(self, done: int, total: int | None, /) -> None:
        if self._tenths.reached(done, total):
            self._stream.write(f"{self._title}: {in_words(done, total)}\n")
            self._stream.flush()

    def __exit__(self, *_: object) -> None:
        return None


class BarProgress(AbstractContextManager["BarProgress"]):
    """A bar with size, speed and time left, which disappears when it is done."""

    def __init__(self, title: str, stream: TextIO) -> None:
        self._title = title
        self._stream = stream
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bar = RichProgress(*columns, TimeRemainingColumn(), console=Console(file=self._stream), transient=True)
        self._task = self._bar.add_task(self._title, total=None)
        self._bar.start()
        return self

    def __call__(self, done: int, total: int | None, /) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def shown(title: str, stream: TextIO | None = None) -> BarProgress | PlainProgress:
    """A context manager to call with the bytes so far: a bar where `stream` (stderr) is a terminal, else lines."""
    stream = stream or sys.stderr
    return BarProgress(title, stream) if stream.isatty() else PlainProgress(title, stream)


def in_words(done: int, total: int | None) -> str:
    """`49 of 98 MB (50 %)`, or `49 MB` where the whole is unknown."""
    if not total:
        return f"{done / 1e6:.0f} MB"
    done = min(done, total)
    return f"{done / 1e6:.0f} of {total / 1e6:.0f} MB ({done * 100 // total} %)"
