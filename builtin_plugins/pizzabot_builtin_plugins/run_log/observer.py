"""The observer: `run.started`, `run.ended` and `run.failed` with ids, status, code and milliseconds."""

from __future__ import annotations

from typing import Any

from pizzabot_hookspecs import Context, Logger
from pizzabot_hookspecs.storage_backends import Run, RunStatus

_FAILED = frozenset({RunStatus.ERROR, RunStatus.TIMEOUT, RunStatus.NEEDS_ATTENTION})


class RunLog:
    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    async def run_started(self, run: Run, /) -> None:
        self._logger.info("run.started", thread_id=run.thread_id, run_id=run.run_id, attempt=run.attempt)

    async def run_finished(self, run: Run, /) -> None:
        facts = {"thread_id": run.thread_id, "run_id": run.run_id, "status": run.status.value, "ms": _milliseconds(run)}
        if run.status in _FAILED:
            # `run.error` stays out: a provider's message can quote the conversation.
            self._logger.warning("run.failed", **facts, code=run.error_code)
        else:
            self._logger.info("run.ended", **facts)


def create(context: Context, _settings: Any) -> RunLog:
    return RunLog(context.logger)


def _milliseconds(run: Run) -> int | None:
    """How long the run was active; None where it never was (stopped while it waited)."""
    if run.started_at is None or run.ended_at is None:
        return None
    return max(0, round((run.ended_at - run.started_at) * 1000))
