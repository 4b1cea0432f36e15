"""Bytes by their SHA-256: each content once, whole or not at all, and nothing left of what was cut short."""

import asyncio
import hashlib
from contextlib import suppress

import pytest

from pizzabot.host.blobs import BlobFolder
from pizzabot.host.blobs import incoming as incoming_files
from pizzabot.host.workspace.locks import Locks, to_its_end
from pizzabot_hookspecs import TooLarge, Unavailable


def files(root):
    return sorted(path for path in root.rglob("*") if path.is_file())


async def pieces(*given):
    for one in given:
        yield one


def digest(content):
    return hashlib.sha256(content).hexdigest()


def test_a_content_is_kept_once_however_it_comes_and_by_how_many(tmp_path):
    async def scene():
        blobs = BlobFolder(tmp_path / "blobs")

        async def add():
            async with blobs.add(pieces(b"one", b"two"), max_bytes=6) as blob:
                return blob

        added = await asyncio.gather(*(add() for _ in range(20)))
        async with blobs.add_bytes(b"onetwo") as same:
            assert {blob.sha256 for blob in added} == {same.sha256} == {digest(b"onetwo")}
        assert [path.name for path in files(tmp_path)] == [digest(b"onetwo")]
        assert await blobs.read(same.sha256) == b"onetwo"

    asyncio.run(scene())


def test_what_is_too_large_broken_or_cancelled_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(incoming_files, "PIECE_BYTES", 1)

    async def broken():
        yield b"half"
        raise RuntimeError("the client has gone")

    waiting = asyncio.Event()

    async def stuck():
        yield b"half"
        waiting.set()
        await asyncio.Event().wait()

    async def scene():
        blobs = BlobFolder(tmp_path / "blobs")

        async def add(content, most):
            async with blobs.add(content, max_bytes=most):
                raise AssertionError("it was kept")

        with pytest.raises(TooLarge) as refused:
            await add(pieces(b"1234", b"5"), 4)
        assert refused.value.code == "file_too_large"
        with pytest.raises(RuntimeError):
            await add(broken(), 100)
        adding = asyncio.create_task(add(stuck(), 100))
        await waiting.wait()
        adding.cancel()
        with suppress(asyncio.CancelledError):
            await adding
        assert files(tmp_path) == []

    asyncio.run(scene())


def test_what_the_system_says_is_told_without_a_path_of_the_machine(tmp_path):
    async def scene():
        blobs = BlobFolder(tmp_path / "blobs")
        with pytest.raises(Unavailable) as failed:
            await blobs.read("0" * 64)
        assert failed.value.code == "file_failed"
        assert str(tmp_path) not in failed.value.detail
        chunks = blobs.chunks("0" * 64, 0, 5)
        with pytest.raises(Unavailable):
            await anext(chunks)
        async with blobs.add_bytes(b"four") as blob:
            chunks = blobs.chunks(blob.sha256, 0, 9)
            assert await anext(chunks) == b"four"
            with pytest.raises(Unavailable, match="shorter"):
                await anext(chunks)

    asyncio.run(scene())


def test_a_lock_is_held_by_one_and_forgotten_when_nobody_wants_it():
    async def scene():
        locks, order = Locks(), []

        async def work(number):
            async with locks.of("t"):
                order.append(number)
                await asyncio.sleep(0)
                order.append(number)

        await asyncio.gather(*(work(number) for number in range(5)))
        assert order == [number for number in range(5) for _ in range(2)]
        assert locks._locks == {}

    asyncio.run(scene())


def test_what_is_done_to_its_end_is_done_before_the_cancellation_is_heard():
    async def scene():
        begun, go_on, done = asyncio.Event(), asyncio.Event(), []

        async def work():
            begun.set()
            await go_on.wait()
            done.append("stored")

        task = asyncio.create_task(to_its_end(work()))
        await begun.wait()
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == ["stored"]

    asyncio.run(scene())
