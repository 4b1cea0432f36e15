"""The rows that memory holds, and copies of what comes in: a caller who changes its dict later changes nothing here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import orjson

from pizzabot_hookspecs import Caller, InvalidRequest, NotFound
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.interrupts import Intent, Interrupt
from pizzabot_hookspecs.storage_backends import Run, StoredEvent, Thread, ThreadStatus, TurnRow


class Place(Enum):
    """Where a run joins the queue. A resume is never behind a message: that would drop the approval (reproduced R3)."""

    RESUME = "in front of all messages, behind the resumes that wait"
    REPLACEMENT = "in front of the other messages"
    END = "at the end"


@dataclass(kw_only=True, slots=True)
class RunRow:
    """A run with what only storage knows: its kind of place in the queue, where it begins in the log, its intents."""

    run: Run
    fingerprint: str
    place: Place
    began: int = 0
    first_seq: int | None = None
    merged: bool = False
    intents: dict[str, Intent] = field(default_factory=dict)

    @property
    def passes_questions(self) -> bool:
        """Whether it may begin while a person is asked."""
        return self.place is Place.RESUME or self.run.cancel_requested_at is not None

    @property
    def beginning(self) -> tuple[int, int]:
        """The order in which a thread's runs began; one that ended in the queue is before all that did."""
        return self.began, self.first_seq or 0


@dataclass(kw_only=True, slots=True)
class TranscriptRow:
    """The host's fold of a thread's log up to `cursor`: a row per turn, by its id."""

    cursor: int = 0
    summary: bytes = b""
    turns: dict[str, TurnRow] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class ThreadRow:
    """A thread, its log, its runs, which is active and which ended last, and the pending ones, front first.

    `named` has the numbers of the events of each name, ascending, `files` the versions of each path, oldest first.
    """

    thread: Thread
    events: list[StoredEvent] = field(default_factory=list)
    named: dict[str, list[int]] = field(default_factory=dict)
    transcript: TranscriptRow = field(default_factory=TranscriptRow)
    files: dict[str, list[FileVersion]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)
    active: str | None = None
    ended: str | None = None
    queue: list[str] = field(default_factory=list)
    beginnings: int = 0


def may_touch(owner: str, caller: Caller) -> bool:
    return caller.system or owner == caller.owner


def no_such_thread(thread_id: str) -> NotFound:
    return NotFound("no_such_thread", f"there is no thread {thread_id!r}")


def check_limit(limit: int) -> None:
    if limit < 0:
        raise InvalidRequest("invalid_limit", f"limit is {limit}: it must be 0 or more")


def check_offset(offset: int) -> None:
    if offset < 0:
        raise InvalidRequest("invalid_offset", f"offset is {offset}: it must be 0 or more")


def copied(value: Any) -> Any:
    """Through JSON, as every other backend does it. Raises `InvalidRequest` `not_json`."""
    try:
        return orjson.loads(orjson.dumps(dict(value) if isinstance(value, Mapping) else value))
    except TypeError as error:
        raise InvalidRequest("not_json", f"a value that is to be stored is not JSON: {error}") from error


def thread_copy(thread: Thread, status: ThreadStatus) -> Thread:
    return replace(thread, metadata=copied(thread.metadata), status=status)


def run_copy(run: Run) -> Run:
    return replace(run, input=copied(run.input), options=copied(run.options))


def interrupt_copy(interrupt: Interrupt) -> Interrupt:
    return replace(interrupt, payload=copied(interrupt.payload), answer=copied(interrupt.answer))
