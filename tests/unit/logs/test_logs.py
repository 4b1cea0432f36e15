"""Logs: records of spec/09 §6 in real files, redacted, rotated, never in the way of the caller."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pizzabot.logs import LogLimits, Logs, configure_logging, log_context
from pizzabot.logs.files import LogFiles
from pizzabot.logs.records import MAX_LINE_BYTES, Entry
from pizzabot.logs.writer import LogWriter
from pizzabot.testing.plugins import imported_by
from pizzabot_hookspecs.support.redaction import REDACTED, Redactor


@pytest.fixture
def open_logs(tmp_path: Path) -> Iterator[Any]:
    opened: list[Logs] = []

    def open_logs(level: str = "info", secrets: tuple[str, ...] = (), **options: Any) -> Logs:
        opened.append(configure_logging(tmp_path, level, Redactor(secrets), **options))
        return opened[-1]

    yield open_logs
    for logs in opened:
        logs.close()


def records(logs: Logs) -> list[dict[str, Any]]:
    logs.close()
    assert logs.path is not None
    return [json.loads(line) for line in logs.path.read_text().splitlines()]


def test_a_record_has_the_form_of_the_specification(open_logs: Any, tmp_path: Path) -> None:
    logs = open_logs(clock=lambda: 1_700_000_000.5)
    logs.logger("storage").warning("disk.slow", message="a write took long", ms=12)
    [record] = records(logs)
    assert re.fullmatch(r"[0-9a-f]{32}", record.pop("id"))
    assert record == {
        "timestamp": "2023-11-14T22:13:20.500+00:00",
        "level": "warning",
        "process": "server",
        "pid": os.getpid(),
        "component": "storage",
        "event": "disk.slow",
        "message": "a write took long",
        "context": {"ms": 12},
    }
    assert logs.path == tmp_path / "logs" / f"server-2023-11-14-{os.getpid()}-0.ndjson"
    assert stat.S_IMODE(logs.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(logs.path.parent.stat().st_mode) == 0o700


def test_levels_below_the_chosen_one_are_left_out(open_logs: Any) -> None:
    logs = open_logs("warning")
    logger = logs.logger("x")
    logger.debug("a")
    logger.info("b")
    logger.warning("c")
    logger.error("d")
    assert [record["event"] for record in records(logs)] == ["c", "d"]


def test_secrets_are_hidden_in_events_facts_keys_and_exceptions(open_logs: Any) -> None:
    logs = open_logs(secrets=("hunter22",))
    logger = logs.logger("x")
    logger.info("said hunter22", authorization="abc", deep={"k": ["hunter22"]}, text="API_KEY=zzz")
    try:
        raise ValueError("with hunter22")
    except ValueError:
        logger.exception("failed")
    text = logs.close() or (logs.path.read_text() if logs.path else "")
    assert "hunter22" not in text
    first, second = map(json.loads, text.splitlines())
    assert first["event"] == f"said {REDACTED}"
    assert first["context"] == {"authorization": REDACTED, "deep": {"k": [REDACTED]}, "text": f"API_KEY={REDACTED}"}
    assert second["level"] == "error"
    assert second["error"]["name"] == "ValueError"
    assert second["error"]["message"] == f"with {REDACTED}"
    assert "test_logs.py" in second["error"]["stack"]


def test_a_fact_is_logged_as_it_was_when_it_was_logged(open_logs: Any) -> None:
    logs = open_logs()
    fact = {"state": "before"}
    logs.logger("x").info("a", fact=fact)
    fact["state"] = "after"
    assert records(logs)[0]["context"] == {"fact": {"state": "before"}}


def test_request_thread_and_run_follow_the_work_through_tasks(open_logs: Any) -> None:
    logs = open_logs()
    logger = logs.logger("x")

    async def work(number: int) -> None:
        with log_context(request_id=f"r{number}", thread_id=None):
            await asyncio.sleep(0)
            await asyncio.create_task(inner(number))

    async def inner(number: int) -> None:
        logger.info("inside", number=number)

    async def all_work() -> None:
        await asyncio.gather(*(work(number) for number in range(5)))
        logger.info("outside")

    asyncio.run(all_work())
    *inside, outside = records(logs)
    assert all(record["context"]["request_id"] == f"r{record['context']['number']}" for record in inside)
    assert "context" not in outside


def test_the_standard_librarys_loggers_warnings_and_crashed_threads_are_captured(open_logs: Any) -> None:
    logs = open_logs(secrets=("hunter22",))
    logging.getLogger("uvicorn.error").warning("bad %s", "hunter22")
    logging.getLogger("langchain").info("not this")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)  # pytest has its own way of catching them
        warnings.warn("old thing", UserWarning, stacklevel=1)

    def crash() -> None:
        raise RuntimeError("in a thread")

    thread = threading.Thread(target=crash, name="worker")
    thread.start()
    thread.join()
    logging.captureWarnings(capture=False)
    uvicorn, warned, crashed = records(logs)
    assert (uvicorn["component"], uvicorn["message"], uvicorn["level"]) == (
        "uvicorn.error",
        f"bad {REDACTED}",
        "warning",
    )
    assert "event" not in uvicorn
    assert "old thing" in warned["message"]
    assert crashed["event"] == "thread.crashed"
    assert crashed["error"]["message"] == "in a thread"


def test_closing_gives_back_what_was_captured(open_logs: Any) -> None:
    before = (list(logging.getLogger().handlers), threading.excepthook)
    logs = open_logs()
    assert threading.excepthook != before[1]
    logs.close()
    logs.close()
    assert (list(logging.getLogger().handlers), threading.excepthook) == before
    logs.logger("x").info("too late")


def test_a_terminal_gets_short_lines_without_control_characters(open_logs: Any) -> None:
    stream = io.StringIO()
    logs = open_logs(terminal=True, stream=stream, clock=lambda: 1_700_000_000.0)
    logs.logger("http").warning("request.failed", message="no\nway \x1b[31mred", path="/x", long="y" * 1000)
    logs.close()
    [line] = stream.getvalue().splitlines()
    assert line.startswith("22:13:20 warning http request.failed: no way  [31mred path=/x long=yyy")
    assert "\x1b" not in line
    assert len(line) <= 400


def test_how_far_something_is_is_one_growing_bar_at_a_terminal_and_lines_in_the_file(open_logs: Any) -> None:
    stream = io.StringIO()
    logs = open_logs(terminal=True, stream=stream)
    for fraction in (0.0, 0.5, 1.0):
        logs.logger("local").info("local.fetching", model="m", fraction=fraction)
    logs.logger("local").info("local.loaded")
    logs.close()
    shown = stream.getvalue()
    assert shown.count("\n") == 2
    assert shown.count("\r\x1b[K") == 2
    assert "[############............] model=m" in shown
    assert logs.path is not None
    told = [json.loads(line).get("context", {}) for line in logs.path.read_text().splitlines()]
    assert [context.get("fraction") for context in told] == [0, 0.5, 1, None]


def test_without_a_terminal_nothing_is_said(open_logs: Any, capfd: pytest.CaptureFixture[str]) -> None:
    logs = open_logs()
    logs.logger("x").error("a")
    logs.close()
    assert capfd.readouterr() == ("", "")


def test_files_are_rotated_by_size_and_no_line_is_split(open_logs: Any, tmp_path: Path) -> None:
    logs = open_logs(limits=LogLimits(file_bytes=2_000, total_bytes=1_000_000))
    for number in range(40):
        logs.logger("x").info("line", number=number, text="z" * 100)
    logs.close()
    files = sorted((tmp_path / "logs").iterdir(), key=lambda path: int(path.stem.split("-")[-1]))
    assert len(files) > 3
    assert all(path.stat().st_size <= 2_000 for path in files)
    numbers = [json.loads(line)["context"]["number"] for path in files for line in path.read_text().splitlines()]
    assert numbers == list(range(40))


def test_a_new_day_begins_a_new_file(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, "server", LogLimits())
    files.write(b"a\n", 1_700_000_000)
    first = files.path
    files.write(b"b\n", 1_700_000_000 + 86_400)
    files.close()
    assert first is not None
    assert first.name == f"server-2023-11-14-{os.getpid()}-0.ndjson"
    assert files.path is not None
    assert files.path.name == f"server-2023-11-15-{os.getpid()}-0.ndjson"


def test_an_existing_file_of_the_same_name_is_never_written_to(tmp_path: Path) -> None:
    taken = tmp_path / f"server-2023-11-14-{os.getpid()}-0.ndjson"
    taken.symlink_to(tmp_path / "victim")
    files = LogFiles(tmp_path, "server", LogLimits())
    files.write(b"a\n", 1_700_000_000)
    files.close()
    assert not (tmp_path / "victim").exists()
    assert files.path is not None
    assert files.path.name.endswith("-1.ndjson")


def test_old_files_go_by_age_then_the_oldest_by_total_size_and_others_are_never_touched(tmp_path: Path) -> None:
    now = time.time()
    ages = {"server-2020-01-01-1-0.ndjson": 8, "server-2020-01-02-1-0.ndjson": 3, "cli-2020-01-03-1-0.ndjson": 2,
            "server-2020-01-04-1-0.ndjson": 1, "notes.ndjson": 99, "server-2020-01-01-1-0.ndjson.bak": 99}  # fmt: skip
    for name, days in ages.items():
        (tmp_path / name).write_bytes(b"x" * 400)
        os.utime(tmp_path / name, (now - days * 86_400, now - days * 86_400))
    (tmp_path / "server-2020-01-05-1-0.ndjson").mkdir()
    files = LogFiles(tmp_path, "server", LogLimits(file_bytes=200, total_bytes=1_000))
    files.write(b"a\n", now)
    files.close()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        "cli-2020-01-03-1-0.ndjson", "server-2020-01-04-1-0.ndjson", "notes.ndjson", "server-2020-01-01-1-0.ndjson.bak",
        "server-2020-01-05-1-0.ndjson", files.path.name if files.path else "",
    }  # fmt: skip


def test_a_full_queue_drops_counts_and_says_so_and_the_caller_never_waits(open_logs: Any) -> None:
    go = threading.Event()
    busy = threading.Event()

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            busy.set()
            go.wait(30)
            return len(text)

    logs = open_logs(terminal=True, stream=Stuck(), limits=LogLimits(queued_records=10))
    logger = logs.logger("x")
    logger.info("first")
    assert busy.wait(30)
    started = time.perf_counter()
    for number in range(50):
        logger.info("next", number=number)
    assert time.perf_counter() - started < 1
    assert logs.counts.dropped == 40
    go.set()
    found = records(logs)
    [report] = [record for record in found if record.get("event") == "logs.dropped"]
    assert report["context"] == {"dropped": 40}
    assert len(found) == 12


def test_what_is_not_written_in_time_at_the_end_counts_as_dropped(tmp_path: Path) -> None:
    go = threading.Event()
    busy = threading.Event()

    class Slow(Redactor):
        def structure(self, value: object) -> Any:
            busy.set()
            go.wait(30)
            return super().structure(value)

    files = LogFiles(tmp_path, "server", LogLimits())
    writer = LogWriter(files, process="server", redactor=Slow(), queued_records=5, stream=None)
    for _ in range(4):
        writer.put(Entry(time=0.0, level="info", component="x", event=None, message="m", facts={}))
        assert busy.wait(30)
    writer.close(patience=0.05)
    go.set()
    assert writer.counts.dropped == 3


def test_a_folder_that_cannot_be_written_is_said_once_and_nothing_crashes(open_logs: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    stream = io.StringIO()
    logs = open_logs(terminal=True, stream=stream)
    for _ in range(5):
        logs.logger("x").info("a")
    logs.close()
    assert stream.getvalue().count("the log cannot be written") == 1
    assert logs.counts.failed == 5
    assert logs.counts.written == 0


def test_values_that_break_are_not_the_callers_problem(open_logs: Any) -> None:
    class Rude:
        def __str__(self) -> str:
            raise RuntimeError("no")

    logs = open_logs()
    circle: dict[str, Any] = {}
    circle["self"] = circle
    logger = logs.logger("x")
    logger.info("rude", value=Rude())
    logger.info("circle", value=circle)
    logger.info("half \ud83d pair", value=float("nan"))
    logger.info("last")
    found = records(logs)
    assert found[-1]["event"] == "last"
    assert logs.counts.failed == 1


def test_a_huge_record_keeps_its_event_and_says_what_was_left_out(open_logs: Any) -> None:
    logs = open_logs()
    logs.logger("x").info("huge", **{f"k{n}": "y" * 32_000 for n in range(50)})
    assert logs.close() is None
    assert logs.path is not None
    assert logs.path.stat().st_size < MAX_LINE_BYTES
    [record] = records(logs)
    assert record["event"] == "huge"
    assert "bytes" in record["context"]["left_out"]


def test_a_large_record_is_redacted_and_written_behind_the_callers_back(tmp_path: Path) -> None:
    threads: list[str] = []

    class Noting(Redactor):
        def structure(self, value: object) -> Any:
            threads.append(threading.current_thread().name)
            return super().structure(value)

    logs = configure_logging(tmp_path, "info", Noting())
    logs.logger("x").info("big", text="word " * 6_000)
    logs.close()
    assert set(threads) == {"pizzabot-logs"}


def test_limits_come_from_the_environment_and_nonsense_is_passed_over() -> None:
    limits = LogLimits.from_environment(
        {"PIZZABOT_LOG_MAX_FILE_MB": "1", "PIZZABOT_LOG_MAX_TOTAL_MB": "nan", "PIZZABOT_LOG_RETENTION_DAYS": "-3"}
    )
    assert limits == LogLimits(file_bytes=1024 * 1024)


def test_a_process_name_that_is_no_file_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lower-case"):
        LogFiles(tmp_path, "../x", LogLimits())


def test_importing_the_logs_does_not_load_structlog() -> None:
    assert "structlog" not in imported_by("pizzabot.logs")


def test_lines_that_are_written_together_are_whole_and_keep_to_the_size_of_a_file(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, "server", LogLimits(file_bytes=100))
    lines = [f"{number:03}-{'x' * (number * 7 % 60)}\n".encode() for number in range(100)]
    lines[50] = b"y" * 250 + b"\n"
    files.write(b"".join(lines), 1_700_000_000)
    files.close()
    found = sorted(tmp_path.glob("*.ndjson"), key=lambda file: int(file.stem.rpartition("-")[2]))
    assert b"".join(file.read_bytes() for file in found) == b"".join(lines)
    assert {file.read_bytes()[-1:] for file in found} == {b"\n"}
    assert [file.stat().st_size for file in found if file.stat().st_size > 100] == [251], "a line longer than a file"


def test_of_lines_that_did_not_all_find_room_the_whole_ones_are_counted_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    class Waits(Redactor):
        def structure(self, value: object) -> Any:
            go.wait(30)
            return super().structure(value)

    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[: data.index(b"\n") + 5]))
    files = LogFiles(tmp_path, "server", LogLimits())
    writer = LogWriter(files, process="server", redactor=Waits(), queued_records=50, stream=None)
    for _ in range(30):
        writer.put(Entry(time=0.0, level="info", component="x", event=None, message="m", facts={}))
    go.set()
    writer.close(patience=30)
    assert (writer.counts.written, writer.counts.failed) == (1, 29)
