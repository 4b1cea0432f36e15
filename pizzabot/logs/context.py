"""Facts that every record of a piece of work carries: request, thread, run. They follow awaits and tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def log_context(**facts: str | None) -> Iterator[None]:
    """`with log_context(request_id=…, thread_id=…, run_id=…):`. A fact that is None is left as it was around."""
    from structlog.contextvars import bound_contextvars

    with bound_contextvars(**{name: value for name, value in facts.items() if value is not None}):
        yield
