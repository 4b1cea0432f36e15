"""What others say outside of our loggers: the standard library's logging, warnings, threads that crash."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Take: TypeAlias = Callable[[str, str, str | None, str, Mapping[str, Any], object], None]
"""(level, component, event, message, facts, error)"""

_OWN_THREAD = "pizzabot-logs"


class Capture(logging.Handler):
    """A handler at the root from warning on, and `threading.excepthook`; `stop` puts back what was there."""

    def __init__(self, take: Take) -> None:
        super().__init__(logging.WARNING)
        self._take = take
        self._thread_hook = threading.excepthook

    def start(self) -> None:
        logging.getLogger().addHandler(self)
        logging.captureWarnings(capture=True)
        self._thread_hook = threading.excepthook
        threading.excepthook = self._thread_crashed

    def stop(self) -> None:
        root = logging.getLogger()
        if self in root.handlers:
            root.removeHandler(self)
            if not any(isinstance(handler, Capture) for handler in root.handlers):
                logging.captureWarnings(capture=False)
        if threading.excepthook == self._thread_crashed:
            threading.excepthook = self._thread_hook
        self.close()

    def emit(self, record: logging.LogRecord) -> None:
        if threading.current_thread().name == _OWN_THREAD:
            return  # what the writer causes must not feed the writer
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a wrong format is the caller's fault, the record still counts
            message = str(record.msg)
        level = "error" if record.levelno >= logging.ERROR else "warning"
        error = record.exc_info[1] if record.exc_info else None
        self._take(level, record.name, None, message, _context(), error)

    def _thread_crashed(self, args: threading.ExceptHookArgs, /) -> None:
        if args.exc_type is SystemExit:
            return
        name = args.thread.name if args.thread else "?"
        self._take("error", "threads", "thread.crashed", f"thread {name} crashed", {}, args.exc_value)


def _context() -> Mapping[str, Any]:
    """The facts of `log_context`, where structlog was ever used."""
    module = sys.modules.get("structlog.contextvars")
    return module.get_contextvars() if module is not None else {}
