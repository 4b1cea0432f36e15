"""The run log says that a run began and how it ended, and nothing of what was said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pizzabot_builtin_plugins.run_log import pizzabot_observers
from pizzabot_builtin_plugins.run_log.observer import RunLog
from pizzabot_hookspecs.observers import ObservesRuns
from pizzabot_hookspecs.storage_backends import Run, RunStatus

SAID = "what was said"


class Recorder:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def info(self, event: str, **facts: Any) -> None:
        self.lines.append(("info", event, facts))

    def warning(self, event: str, **facts: Any) -> None:
        self.lines.append(("warning", event, facts))

    debug = error = exception = info


def run_with(status: RunStatus, **more: Any) -> Run:
    facts: dict[str, Any] = {"started_at": 100.0, "ended_at": 101.2344, "error": SAID, **more}
    return Run(
        run_id="r", thread_id="t", owner="local", status=status, input={"messages": [SAID]}, options={"x": SAID},
        created_at=99.0, attempt=1, **facts,
    )  # fmt: skip


def logged(run: Run) -> tuple[str, str, dict[str, Any]]:
    recorder = Recorder()
    observer = RunLog(recorder)
    asyncio.run(observer.run_finished(run) if run.status.final else observer.run_started(run))
    [line] = recorder.lines
    assert SAID not in str(line)
    return line


def test_a_run_that_began_is_logged_by_its_ids() -> None:
    assert logged(run_with(RunStatus.RUNNING)) == (
        "info",
        "run.started",
        {"thread_id": "t", "run_id": "r", "attempt": 1},
    )


@pytest.mark.parametrize("status", [RunStatus.SUCCESS, RunStatus.CANCELLED, RunStatus.INTERRUPTED])
def test_a_run_that_ended_is_logged_with_status_and_milliseconds(status: RunStatus) -> None:
    facts = {"thread_id": "t", "run_id": "r", "status": status.value, "ms": 1234}
    assert logged(run_with(status)) == ("info", "run.ended", facts)


@pytest.mark.parametrize("status", [RunStatus.ERROR, RunStatus.TIMEOUT, RunStatus.NEEDS_ATTENTION])
def test_a_run_that_failed_is_a_warning_with_its_code(status: RunStatus) -> None:
    facts = {"thread_id": "t", "run_id": "r", "status": status.value, "ms": 1234, "code": "RATE_LIMIT"}
    assert logged(run_with(status, error_code="RATE_LIMIT")) == ("warning", "run.failed", facts)


def test_a_run_that_never_started_has_no_duration() -> None:
    assert logged(run_with(RunStatus.CANCELLED, started_at=None))[2]["ms"] is None


def test_it_is_an_observer_of_runs() -> None:
    [offer] = pizzabot_observers()
    assert offer.name == "run-log"
    assert isinstance(RunLog(Recorder()), ObservesRuns)
