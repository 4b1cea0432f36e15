"""`configure_logging`: structlog in front of the writer, the standard library's loggers and crashed threads with it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, TextIO, cast

from pizzabot.logs.capture import Capture
from pizzabot.logs.files import LogFiles
from pizzabot.logs.limits import LogLimits
from pizzabot.logs.records import Entry, snapshot
from pizzabot.logs.writer import LogCounts, LogWriter
from pizzabot_hookspecs.offers import Logger
from pizzabot_hookspecs.support.redaction import Redactor

CLOSE_SECONDS = 3.0
"""How long the end of the process waits for a slow disk to take the last records."""

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


class Logs:
    """The logging of one process (or one host in a test), made by `configure_logging`. `close` it after all else."""

    def __init__(self, writer: LogWriter, files: LogFiles, level: str, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._files = files
        self._level = _LEVELS.get(level.lower(), 20)
        self._clock = clock
        self._capture = Capture(self.take)
        self._capture.start()

    @property
    def path(self) -> Path | None:
        """The file being written; None before the first record reached it."""
        return self._files.path

    @property
    def counts(self) -> LogCounts:
        return self._writer.counts

    def logger(self, name: str) -> Logger:
        """A structured logger whose records have `component` = `name`. Never raises and never waits."""
        import structlog

        return cast(
            "Logger",
            structlog.wrap_logger(
                _Sink(),
                processors=[structlog.contextvars.merge_contextvars, self._process],
                wrapper_class=structlog.make_filtering_bound_logger(self._level),
                component=name,
            ),
        )

    def close(self) -> None:
        """Flush, and give the standard library's logging back. Safe to call twice."""
        self._capture.stop()
        self._writer.close(CLOSE_SECONDS)

    def take(
        self, level: str, component: str, event: str | None, message: str, facts: Mapping[str, Any], error: object
    ) -> None:
        """Queue one record. `error` is an exception or nothing."""
        try:
            self._writer.put(
                Entry(
                    time=self._clock(),
                    level=level,
                    component=component,
                    event=event,
                    message=message,
                    facts=snapshot(facts),
                    error=error if isinstance(error, BaseException) else None,
                )
            )
        except Exception:  # noqa: BLE001 - a value whose __str__ raises, a dict that changes meanwhile
            self._writer.counts.failed += 1

    def _process(self, _: object, method: str, facts: MutableMapping[str, Any]) -> tuple[tuple[()], dict[str, Any]]:
        event = str(facts.pop("event", ""))
        component = str(facts.pop("component", ""))
        message = facts.pop("message", event)
        error = _exception(facts.pop("exc_info", None))
        level = "error" if method == "exception" else method
        self.take(level, component, event, str(message), facts, error)
        return (), {}


class _Sink:
    """structlog hands what the processors return to the method of a logger; they have done the work."""

    def msg(self) -> None:
        return None

    debug = info = warning = error = critical = exception = msg


def _exception(given: object) -> BaseException | None:
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return given[1] if len(given) > 1 and isinstance(given[1], BaseException) else None
    return sys.exc_info()[1] if given else None


def configure_logging(
    data_root: Path,
    level: str,
    redactor: Redactor,
    *,
    process: str = "server",
    terminal: bool = False,
    limits: LogLimits | None = None,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.time,
) -> Logs:
    """Start logging to `<data_root>/logs/<process>-<date>-<pid>-<sequence>.ndjson`.

    `level` is debug, info, warning or error; other libraries' records are taken from warning on. `terminal` adds short
    lines on `stream` (standard error). A folder that cannot be written is said once and never stops the process.
    """
    limits = limits or LogLimits.from_environment(os.environ)
    files = LogFiles(data_root / "logs", process, limits)
    writer = LogWriter(
        files,
        process=process,
        redactor=redactor,
        queued_records=limits.queued_records,
        stream=(stream or sys.stderr) if terminal else None,
        clock=clock,
    )
    return Logs(writer, files, level, clock)
