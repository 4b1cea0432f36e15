"""kill -9 before each statement of a transaction: all of it is there afterwards, or nothing, and never half."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import MergedEvents, NewEvent, NewRun, RunStatus, TurnRow

DOOMED = """
import asyncio, os, signal, sys
from pathlib import Path
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.file_storage import FileVersion, NewFileVersion
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import (
    MergedEvents, NewEvent, NewRun, Run, RunStatus, StoredEvent, ThreadCopy, TurnRow,
)

AFTER_COMMIT = 1_000_000

def copy():
    run = Run(
        run_id="copied", thread_id="copy", owner="", status=RunStatus.SUCCESS, input={}, options={}, created_at=1.0,
        started_at=2.0, ended_at=3.0,
    )
    log = [
        StoredEvent(seq=seq, thread_id="copy", run_id="copied", method="m", data=b"%d" % seq, timestamp=1)
        for seq in range(1, 101)
    ]
    files = [
        FileVersion(
            thread_id="copy", path="/a", version=seq, sha256="f", size=1, media_type="text/plain", author="agent",
            turn_id=None, run_id="copied", seq=seq, created_at=1.0,
        )
        for seq in range(1, 11)
    ]
    return ThreadCopy(thread_id="copy", title="copy", model_id="a:b", runs=[run], events=log, files=files)

def turns(rev):
    return [
        TurnRow(turn_id=name, seq=seq, rev=rev, parent_id=None, settled=True, body=b"%d" % rev)
        for seq, name in enumerate("abc", start=1)
    ]

def events(*texts):
    return [NewEvent(method="m", data=text.encode(), timestamp=1) for text in texts]

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

CALLS = {
    "decide": lambda storage: storage.decide(
        [Decision(interrupt_id=name, answer=name) for name in ("one", "two", "three")],
        NewRun(run_id="resume", thread_id="asked", input={}, options={}, fingerprint="f"), by="phone", caller=LOCAL,
    ),
    "finish": lambda storage: storage.finish_run(
        "running", 1, events("x", "y", "end"), status=RunStatus.INTERRUPTED,
        interrupts=[NewInterrupt(interrupt_id=f"i{n}", kind=InterruptKind.APPROVAL, payload={}) for n in range(3)],
        caller=LOCAL,
    ),
    "merge": lambda storage: storage.merge_events(
        "r", [MergedEvents(first_seq=1, last_seq=3, data=b"abc"), MergedEvents(first_seq=5, last_seq=7, data=b"efg")],
        caller=LOCAL,
    ),
    "facts": lambda storage: storage.append_facts("busy", events("x", "y"), caller=LOCAL),
    "file": lambda storage: storage.put_file(
        NewFileVersion(
            thread_id="busy", path="/a", sha256="f", size=1, media_type="text/plain", author="agent", run_id="running",
        ),
        events("file")[0], epoch=1, caller=LOCAL,
    ),
    "put": lambda storage: storage.put_transcript(
        "old", turns(2), after=1, cursor=2, summary=b"2", caller=LOCAL
    ),
    "drop": lambda storage: storage.drop_transcript("old", caller=LOCAL),
    "adopt": lambda storage: storage.adopt_thread(copy(), caller=LOCAL),
}

async def main(path, what, statements):
    left = [statements]

    def count(statement):
        left[0] -= 1
        if left[0] < 0:
            kill()

    async with SqliteStorage(path) as storage:
        await storage._writer.run(lambda connection: connection.set_trace_callback(count))
        if statements == AFTER_COMMIT:
            storage._writer._deliver = kill
        await CALLS[what](storage)
        print("done", flush=True)
        left[0] = AFTER_COMMIT

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""


AFTER_COMMIT = 1_000_000
"""In place of a statement: kill what committed the call before it can answer."""


def events(*texts: str) -> list[NewEvent]:
    return [NewEvent(method="m", data=text.encode(), timestamp=1) for text in texts]


async def prepared(path: Path) -> None:
    """A thread that waits for three answers, a run that goes on elsewhere, and a log that can be merged."""
    async with SqliteStorage(path) as storage:
        for run_id, thread_id in (("asks", "asked"), ("running", "busy"), ("r", "old")):
            new = NewRun(run_id=run_id, thread_id=thread_id, input={}, options={}, fingerprint="f")
            await storage.admit_run(new, caller=LOCAL)
            await storage.claim_run(run_id, server_id="s", caller=LOCAL)
        asked = [NewInterrupt(interrupt_id=name, kind=InterruptKind.APPROVAL, payload={}) for name in NAMES]
        await storage.finish_run("asks", 1, events("end"), status=RunStatus.INTERRUPTED, interrupts=asked, caller=LOCAL)
        await storage.append_events("running", 1, events("first"), caller=LOCAL)
        await storage.finish_run("r", 1, events(*"abcdefg"), status=RunStatus.SUCCESS, caller=LOCAL)
        rows = [
            TurnRow(turn_id=name, seq=seq, rev=1, parent_id=None, settled=True, body=b"1")
            for seq, name in enumerate("abc", start=1)
        ]
        assert await storage.put_transcript("old", rows, after=0, cursor=1, summary=b"1", caller=LOCAL)


NAMES = ("one", "two", "three")


async def decided(storage: SqliteStorage) -> bool:
    """Whether the decision happened, after looking that it did so wholly or not at all."""
    interrupts = [await storage.interrupt(name, caller=LOCAL) for name in NAMES]
    found = [(interrupt.state, interrupt.answer, interrupt.decided_by) for interrupt in interrupts if interrupt]
    run = await storage.run("resume", caller=LOCAL)
    if run is None:
        assert found == [(InterruptState.OPEN, None, None)] * 3
        assert [one.interrupt_id for one in await storage.open_interrupts("asked", caller=LOCAL)] == list(NAMES)
        return False
    assert found == [(InterruptState.DECIDED, name, "phone") for name in NAMES]
    assert run.status is RunStatus.PENDING
    assert await storage.next_pending("asked", caller=LOCAL) == run
    return True


async def finished(storage: SqliteStorage) -> bool:
    run = await storage.run("running", caller=LOCAL)
    assert run is not None
    texts = [event.data for event in await storage.events("busy", after=0, limit=100, caller=LOCAL)]
    ids = [interrupt.interrupt_id for interrupt in await storage.open_interrupts("busy", caller=LOCAL)]
    if run.status is RunStatus.RUNNING:
        assert (texts, ids) == ([b"first"], [])
        return False
    assert run.status is RunStatus.INTERRUPTED
    assert (texts, ids) == ([b"first", b"x", b"y", b"end"], ["i0", "i1", "i2"])
    return True


async def merged(storage: SqliteStorage) -> bool:
    log = [(event.seq, event.data) for event in await storage.events("old", after=0, limit=100, caller=LOCAL)]
    if len(log) == 7:
        assert [data for _, data in log] == [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]
        return False
    assert log == [(3, b"abc"), (4, b"d"), (7, b"efg")]
    return True


async def told(storage: SqliteStorage) -> bool:
    log = [(event.seq, event.data) for event in await storage.events("busy", after=0, limit=100, caller=LOCAL)]
    thread = await storage.thread("busy", caller=LOCAL)
    assert thread is not None
    assert thread.next_seq == len(log) + 1
    assert log in ([(1, b"first")], [(1, b"first"), (2, b"x"), (3, b"y")])
    return len(log) == 3


async def transcript_of(storage: SqliteStorage) -> tuple[int, bytes, list[bytes]]:
    index = await storage.transcript_index("old", caller=LOCAL)
    rows = await storage.transcript_turns("old", [turn.turn_id for turn in index.turns], caller=LOCAL)
    assert [row.rev for row in rows] == [index.cursor] * len(rows)
    return index.cursor, index.summary, [row.body for row in rows]


async def put(storage: SqliteStorage) -> bool:
    found = await transcript_of(storage)
    assert found in ((1, b"1", [b"1"] * 3), (2, b"2", [b"2"] * 3))
    return found[0] == 2


async def dropped(storage: SqliteStorage) -> bool:
    found = await transcript_of(storage)
    assert found in ((1, b"1", [b"1"] * 3), (0, b"", []))
    return found[0] == 0


async def adopted(storage: SqliteStorage) -> bool:
    thread = await storage.thread("copy", caller=LOCAL)
    run = await storage.run("copied", caller=LOCAL)
    log = [event.data for event in await storage.events("copy", after=0, limit=1_000, caller=LOCAL)]
    files = await storage.file_versions("copy", "/a", limit=100, caller=LOCAL)
    if thread is None:
        assert (run, log, list(files)) == (None, [], [])
        return False
    assert run is not None
    assert (run.first_seq, thread.next_seq, thread.model_id) == (1, 101, "a:b")
    assert log == [b"%d" % seq for seq in range(1, 101)]
    assert [file.version for file in files] == list(range(10, 0, -1))
    return True


async def written(storage: SqliteStorage) -> bool:
    log = [(event.seq, event.data) for event in await storage.events("busy", after=0, limit=100, caller=LOCAL)]
    thread = await storage.thread("busy", caller=LOCAL)
    assert thread is not None
    files = [(file.version, file.seq) for file in await storage.files("busy", turns=None, caller=LOCAL)]
    if not files:
        assert (log, thread.next_seq) == ([(1, b"first")], 2)
        return False
    assert (log, thread.next_seq) == ([(1, b"first"), (2, b"file")], 3)
    assert files == [(1, 2)]
    return True


LOOKS = {
    "decide": decided,
    "finish": finished,
    "merge": merged,
    "facts": told,
    "file": written,
    "put": put,
    "drop": dropped,
    "adopt": adopted,
}


def killed_before(statement: int, path: Path, what: str) -> bool:
    """Whether the process was killed; else it said that the call was answered."""
    command = [sys.executable, "-c", DOOMED, str(path), what, str(statement)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == -signal.SIGKILL:
        assert done.stdout == "", "it was answered before it was over"
        return True
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    return False


async def looked(path: Path, what: str) -> bool:
    async with SqliteStorage(path) as storage:
        return await LOOKS[what](storage)


@pytest.mark.parametrize("what", LOOKS)
def test_a_kill_before_any_statement_leaves_all_of_it_or_nothing(tmp_path: Path, what: str) -> None:
    statement, happened = 0, []
    while True:
        path = tmp_path / str(statement)
        asyncio.run(prepared(path))
        killed = killed_before(statement, path, what)
        happened.append(asyncio.run(looked(path, what)))
        if not killed:
            break
        statement += 1
    assert statement >= 8, f"only {statement} statements: was the transaction watched at all?"
    assert happened == [False] * statement + [True], "what was not committed is not there, what was answered is"


@pytest.mark.parametrize(("statement", "committed"), [(5, False), (AFTER_COMMIT, True)])
def test_what_a_kill_left_without_an_answer_can_be_sent_again(tmp_path: Path, statement: int, committed: bool) -> None:
    resume = NewRun(run_id="resume", thread_id="asked", input={}, options={}, fingerprint="f")
    other = NewRun(run_id="other", thread_id="asked", input={}, options={}, fingerprint="f")
    decisions = [Decision(interrupt_id=name, answer=name) for name in NAMES]
    ranges = [
        MergedEvents(first_seq=1, last_seq=3, data=b"abc"),
        MergedEvents(first_seq=5, last_seq=7, data=b"efg"),
    ]

    async def again() -> None:
        async with SqliteStorage(tmp_path) as storage:
            for created in (not committed, False):
                admission = await storage.decide(decisions, resume, by="phone", caller=LOCAL)
                assert admission.created is created
                await storage.merge_events("r", ranges, caller=LOCAL)
            with pytest.raises(Conflict, match="was decided by 'phone'"):
                await storage.decide(decisions, other, by="desk", caller=LOCAL)
            assert await decided(storage)
            assert await merged(storage)

    asyncio.run(prepared(tmp_path))
    for what in ("decide", "merge"):
        assert killed_before(statement, tmp_path, what)
        assert asyncio.run(looked(tmp_path, what)) is committed
    asyncio.run(again())
