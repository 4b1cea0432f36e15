"""kill -9 of the writing process: what was acknowledged is there, and no batch is there in part."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import RunStatus

SIZE = 7
WRITERS = 6

WRITER = """
import asyncio, sys
from pathlib import Path
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import NewEvent, NewRun, RunStatus

SIZE, WRITERS, life = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

def say(*words):
    print(*words, flush=True)

async def write(storage, writer):
    for turn in range(1_000_000):
        run_id = f"run-{life}-{writer}-{turn}"
        new = NewRun(run_id=run_id, thread_id=f"t{writer}", input={}, options={}, fingerprint="f")
        await storage.admit_run(new, caller=LOCAL)
        say("admitted", run_id)
        run = await storage.claim_run(run_id, server_id=life, caller=LOCAL)
        for number in range(5):
            name = f"{run_id}.{number}"
            batch = [NewEvent(method="m", data=f"{name}.{part}".encode(), timestamp=1) for part in range(SIZE)]
            seq = await storage.append_events(run_id, run.epoch, batch, caller=LOCAL)
            say("stored", f"t{writer}", seq, name)
        end = [NewEvent(method="m", data=f"{run_id}.5.{part}".encode(), timestamp=1) for part in range(SIZE)]
        await storage.finish_run(run_id, run.epoch, end, status=RunStatus.SUCCESS, caller=LOCAL)
        say("ended", run_id)

async def main(path):
    async with SqliteStorage(path) as storage:
        for old in await storage.unfinished_runs(caller=LOCAL):
            taken = await storage.claim_run(old.run_id, server_id=life, takeover=old.status.active, caller=LOCAL)
            assert taken is not None, old
            end = [NewEvent(method="m", data=f"{old.run_id}.r.{part}".encode(), timestamp=1) for part in range(SIZE)]
            await storage.finish_run(old.run_id, taken.epoch, end, status=RunStatus.ERROR, caller=LOCAL)
        await asyncio.gather(*(write(storage, writer) for writer in range(WRITERS)))

asyncio.run(main(Path(sys.argv[1])))
"""


def killed_after(lines: int, path: Path, life: int) -> list[list[str]]:
    """What a writing process said before it was killed."""
    command = [sys.executable, "-c", WRITER, str(path), str(SIZE), str(WRITERS), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = [line for line, _ in zip(process.stdout, range(lines), strict=False)]
        assert len(said) == lines, process.stderr.read()
        process.send_signal(signal.SIGKILL)
        said += [line for line in process.stdout if line.endswith("\n")]
        process.wait()
    return [line.split() for line in said]


async def compared(path: Path, said: list[list[str]]) -> None:
    async with SqliteStorage(path) as storage:
        logs = {
            f"t{writer}": await storage.events(f"t{writer}", after=0, limit=1_000_000, caller=LOCAL)
            for writer in range(WRITERS)
        }
        for words in said:
            if words[0] == "stored":
                events = logs[words[1]][int(words[2]) - 1 :][:SIZE]
                assert [event.data.decode() for event in events] == [f"{words[3]}.{part}" for part in range(SIZE)]
                continue
            run = await storage.run(words[1], caller=LOCAL)
            assert run is not None, f"{words[1]} was acknowledged and is gone"
            assert words[0] == "admitted" or run.status is RunStatus.SUCCESS
        for events in logs.values():
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            batches: dict[str, list[str]] = defaultdict(list)
            for event in events:
                name, part = event.data.decode().rsplit(".", 1)
                batches[name].append(part)
            assert all(parts == [str(part) for part in range(SIZE)] for parts in batches.values())


@pytest.mark.parametrize("lines", [5, 203])
def test_nothing_acknowledged_is_lost_and_no_batch_is_torn_by_kill_9(tmp_path: Path, lines: int) -> None:
    said: list[list[str]] = []
    for life in range(3):
        said += killed_after(lines, tmp_path, life)
        asyncio.run(compared(tmp_path, said))
