"""The trail writes in the background and loses nothing, whatever the disk does meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pizzabot_storage_audit.files import RotatedFile
from pizzabot_storage_audit.trail import MAX_WAITING, AuditTrail

from pizzabot_hookspecs import LOCAL


class Silent:
    """A `Logger` that says nothing."""

    def debug(self, event: str, **facts: Any) -> None: ...

    info = warning = error = exception = debug


def trail_in(folder: Path) -> AuditTrail:
    return AuditTrail(folder, max_bytes=10_000_000, max_files=2, clock=lambda: 1_800_000_000.0, logger=Silent())


def written(folder: Path) -> list[str]:
    return [json.loads(line)["thread_id"] for line in (folder / "audit.ndjson").read_text().splitlines()]


def test_more_lines_than_may_wait_all_arrive_in_order(tmp_path: Path) -> None:
    numbers = [str(number) for number in range(MAX_WAITING + 500)]

    async def scenario() -> None:
        async with trail_in(tmp_path) as trail:
            for number in numbers:
                await trail.write("thread.deleted", LOCAL, thread_id=number)

    asyncio.run(scenario())
    assert written(tmp_path) == numbers


def test_while_the_disk_is_slow_so_many_lines_wait_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_is_free, append = Event(), RotatedFile.append

    def slow_append(file: RotatedFile, lines: Sequence[str]) -> None:
        assert disk_is_free.wait(30)
        append(file, lines)

    monkeypatch.setattr(RotatedFile, "append", slow_append)
    numbers = [str(number) for number in range(MAX_WAITING + 2)]

    async def scenario() -> None:
        async with trail_in(tmp_path) as trail:
            await trail.write("thread.deleted", LOCAL, thread_id=numbers[0])
            await asyncio.sleep(0)  # the writer takes the first line and waits for the disk
            for number in numbers[1:-1]:
                await asyncio.wait_for(trail.write("thread.deleted", LOCAL, thread_id=number), 1)
            one_too_many = asyncio.create_task(trail.write("thread.deleted", LOCAL, thread_id=numbers[-1]))
            done, _ = await asyncio.wait({one_too_many}, timeout=0.05)
            assert not done
            disk_is_free.set()
            await one_too_many

    asyncio.run(scenario())
    assert written(tmp_path) == numbers
