"""The disk is full or the database is held by another process, in mid-run: nothing is lost, and the run ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from talking import frames_of, text_of, texts
from watching import begun, check_log, done, ending, next_message_works, play, stored_runs, watched

LOCKED_SECONDS = 20.0
WORDS = " ".join(f"w{number}" for number in range(400))


class SmallDisk:
    """A file system of a few megabytes, and a file that takes all that is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], check=True)

    def fill(self, _pid: int) -> None:
        with (self.folder / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            for size in (65_536, 4096, 512):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * size)

    def free(self, _pid: int) -> None:
        (self.folder / "ballast").unlink()

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


class FileLimit:
    """Without the right to mount: no file of the server may grow any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    def free(self, pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def close(self) -> None:
        pass


def may_mount() -> bool:
    """Whether this user may mount a file system here (containers often may not)."""
    probe = ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    try:
        return os.geteuid() == 0 and subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


DISKS = [FileLimit, SmallDisk] if may_mount() else [FileLimit]


@pytest.mark.parametrize("kind", DISKS)
def test_a_disk_that_is_full_for_a_while_loses_nothing_and_the_run_ends(serve, tmp_path, kind):
    disk = kind(tmp_path / "disk")
    try:
        server = serve(folder=disk.folder / "server")
        play(run_on_a_full_disk(server, disk))
        assert server.stop() == 0
    finally:
        disk.close()


async def run_on_a_full_disk(server, disk):
    async with watched(server, "t") as (client, record):
        await frames_of(client, "t", await begun(client, "t", "before"))
        run_id = await begun(client, "t", f"[[pace 0.003]]{WORDS}")
        await record.until(lambda frame: "w20 " in text_of([frame]))
        disk.fill(server.pid)
        accepted = await until_refused(client)
        assert await client.healthy()
        assert stored_runs(server.data_root, "t")[run_id] == "running"
        disk.free(server.pid)
        frames = await frames_of(client, "t", run_id)
        assert (ending(frames), text_of(frames)) == (("completed", None), WORDS)
        assert texts(await client.state("t"))[-1] == ("ai", WORDS)
        await next_message_works(client, "t")
        await next_message_works(client, "u")
        assert len(stored_runs(server.data_root, "u")) == accepted + 1, "one that was refused is there, or one is lost"
        check_log(server, "u")
        check_log(server, "t", record)


async def until_refused(client):
    """A message is refused while nothing can be written; how many were taken before the last room was gone."""
    accepted = 0
    params = {"input": {"prompt": "x" * 8192}, "multitask_strategy": "enqueue"}
    while (answer := await client.command("u", "run.start", params))["type"] == "success":
        accepted += 1
    assert answer["error"] == "storage_failed", answer
    return accepted


def test_a_disk_that_is_full_when_a_result_is_to_be_kept_delays_the_run_and_the_result_is_kept(serve, gates, tmp_path):
    disk = FileLimit(tmp_path)
    server = serve()
    gates.hold("after post")

    async def scene():
        async with watched(server, "t") as (client, record):
            await frames_of(client, "t", await begun(client, "t", "before"))
            run_id = await begun(client, "t", '[[tool post {"to": "ada"}]] [[then]] posted')
            gates.reached("after post ada")
            disk.fill(server.pid)
            await until_refused(client)
            gates.release("after post")
            await until_refused(client)  # meanwhile the result could not be stored, or is about to be
            disk.free(server.pid)
            frames = await frames_of(client, "t", run_id)
            assert (ending(frames), text_of(frames)) == (("completed", None), "posted")
            assert done(server) == ["post ada"]
            assert await client.inbox() == []
            results = [text for kind, text in texts(await client.state("t")) if kind == "tool"]
            assert results == ["post sent to ada"]
            await next_message_works(client, "t")
            assert done(server) == ["post ada"]
            check_log(server, "t", record)

    play(scene())


LOCKER = """
import sqlite3, sys, time
held = [sqlite3.connect(path, isolation_level=None, timeout=10) for path in sys.argv[2:]]
for database in held:
    database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[1]))
"""


def test_a_database_that_another_process_locks_for_twenty_seconds_loses_nothing(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            await frames_of(client, "t", await begun(client, "t", "before"))
            run_id = await begun(client, "t", f"[[pace 0.005]]{WORDS}")
            await record.until(lambda frame: "w20 " in text_of([frame]))
            files = sorted(map(str, server.data_root.glob("*.sqlite")))
            began = time.monotonic()
            command = [sys.executable, "-c", LOCKER, str(LOCKED_SECONDS), *files]
            locker = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            assert await locker.stdout.readline() == b"held\n"
            waiting = asyncio.ensure_future(begun(client, "u", "sent while it was locked"))
            slowest = 0.0
            while locker.returncode is None:
                asked_at = time.monotonic()
                assert await client.healthy()
                slowest = max(slowest, time.monotonic() - asked_at)
                await asyncio.wait({asyncio.ensure_future(locker.wait())}, timeout=0.5)
            assert time.monotonic() - began >= LOCKED_SECONDS
            assert slowest < 1.0, "the server stood still"
            frames = await frames_of(client, "t", run_id)
            assert (ending(frames), text_of(frames)) == (("completed", None), WORDS)
            assert ending(await frames_of(client, "u", await waiting)) == ("completed", None)
            assert texts(await client.state("t"))[-1] == ("ai", WORDS)
            await next_message_works(client, "t")
            check_log(server, "t", record)

    play(scene())
