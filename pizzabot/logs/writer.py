"""The thread that writes: a bounded queue before it, so that no caller waits for a disk, a pipe or a terminal."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from pizzabot.logs.files import LogFiles, PartlyWrittenError
from pizzabot.logs.records import Entry, to_line, to_record
from pizzabot.logs.terminal import is_progress, to_text
from pizzabot_hookspecs.support.redaction import Redactor

GATHER_SECONDS = 0.02
"""How long records gather before they are written together: a thread that wakes for each one costs the loop more."""

GATHERED_RECORDS = 256
"""Records that one write takes."""

RETRY_SECONDS = 5.0
"""After a failed write the file is left alone for this long."""


@dataclass
class LogCounts:
    """`dropped` records found the queue full, `failed` ones could not be written to the file."""

    written: int = 0
    dropped: int = 0
    failed: int = 0


class LogWriter:
    """Takes entries from any thread and never raises. `stream` gets the short lines; None where nobody reads them."""

    def __init__(
        self,
        files: LogFiles,
        *,
        process: str,
        redactor: Redactor,
        queued_records: int,
        stream: TextIO | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._process = process
        self._redactor = redactor
        self._stream = stream
        self._clock = clock
        self._queue: queue.Queue[Entry | None] = queue.Queue(queued_records)
        self._counting = threading.Lock()
        self._hurry = threading.Event()
        self._closed = False
        self._reported = 0
        self._in_hand = 0
        self._wait_until = 0.0
        self._at_line_start = True
        self.counts = LogCounts()
        self._thread = threading.Thread(target=self._run, name="pizzabot-logs", daemon=True)
        self._thread.start()

    def put(self, entry: Entry) -> None:
        if self._closed:
            return
        try:
            self._queue.put_nowait(entry)
            if self._queue.qsize() * 2 > self._queue.maxsize:
                self._hurry.set()
        except queue.Full:
            with self._counting:
                self.counts.dropped += 1

    def close(self, patience: float) -> None:
        """Write what is queued, at most `patience` seconds long; what is left then counts as dropped, and is said.

        Later entries are passed over. Safe to call twice.
        """
        if self._closed:
            return
        self._closed = True
        self._hurry.set()
        deadline = time.monotonic() + patience
        end = 0
        with suppress(queue.Full):
            self._queue.put(None, timeout=patience)
            end = 1
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive() and (left := self._queue.qsize() - end + self._in_hand) > 0:
            self.counts.dropped += left
            self._say(f"pizzabot: {left} log records were not written within {patience:g} s")

    def _run(self) -> None:
        entry = self._queue.get()
        while entry is not None:
            if self._hurry.wait(GATHER_SECONDS) and not self._closed:
                self._hurry.clear()
            gathered = [entry]
            with suppress(queue.Empty):
                while len(gathered) < GATHERED_RECORDS and (entry := self._queue.get_nowait()) is not None:
                    gathered.append(entry)
            self._write_safely(gathered)
            self._report_dropped()
            if entry is not None:
                entry = self._queue.get()
        self._files.close()

    def _report_dropped(self) -> None:
        dropped = self.counts.dropped - self._reported
        if dropped:
            self._reported += dropped
            message = f"{dropped} log records were dropped: more than {self._queue.maxsize} were waiting to be written"
            self._write_safely([self._own("logs.dropped", message, {"dropped": dropped})])

    def _own(self, event: str, message: str, facts: dict[str, object]) -> Entry:
        return Entry(time=self._clock(), level="warning", component="logs", event=event, message=message, facts=facts)

    def _write_safely(self, entries: Sequence[Entry]) -> None:
        """Nothing that is logged, and no disk, may end this thread."""
        lines = []
        for number, entry in enumerate(entries, start=1):
            self._in_hand = len(entries) - number
            if (line := self._line_of(entry)) is not None:
                lines.append(line)
        if lines:
            self._to_file(lines)

    def _line_of(self, entry: Entry) -> bytes | None:
        try:
            record = to_record(entry, process=self._process, redactor=self._redactor)
            line, text = to_line(record), to_text(record)
        except Exception as error:  # noqa: BLE001 - a stranger's value
            self.counts.failed += 1
            self._say(f"a log record of {entry.component} cannot be shown: {type(error).__name__}")
            return None
        self._say(text, stays=not is_progress(record) or record["context"]["fraction"] == 1)
        return line

    def _to_file(self, lines: Sequence[bytes]) -> None:
        if time.monotonic() < self._wait_until:
            self.counts.failed += len(lines)
            return
        try:
            self._files.write(b"".join(lines), self._clock())
            self.counts.written += len(lines)
        except OSError as error:
            whole = error.whole if isinstance(error, PartlyWrittenError) else 0
            self.counts.written += whole
            self.counts.failed += len(lines) - whole
            self._wait_until = time.monotonic() + RETRY_SECONDS
            self._files.close()
            self._say(f"pizzabot: the log cannot be written ({error.strerror or error}); going on without it")

    def _say(self, text: str, *, stays: bool = True) -> None:
        """A line for the terminal. One that does not stay is overwritten by the next: a bar that grows."""
        if self._stream is None:
            return
        start, self._at_line_start = ("" if self._at_line_start else "\r\x1b[K"), stays
        try:
            self._stream.write(f"{start}{text}" + ("\n" if stays else ""))
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone
            self._stream = None
