"""Server-sent events are read whole, however they are cut into pieces, and within a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pizzabot.client import StreamCutError
from pizzabot.client.ids import uuid7
from pizzabot.client.sse import frames


def read(*pieces: bytes, limit: int = 10_000) -> list[Any]:
    async def source() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def collect() -> list[Any]:
        return [frame async for frame in frames(source(), limit=limit)]

    return asyncio.run(collect())


STREAM = ': open\n\nevent: x\ndata: {"a": "é"}\nid: 1\n\ndata: {"b":\ndata: 2}\n\n: heartbeat\n\n'.encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_pieces_of_any_size_and_both_line_endings_give_the_same_frames(size: int, ending: bytes) -> None:
    stream = STREAM.replace(b"\n", ending)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(*pieces) == [None, {"a": "é"}, {"b": 2}, None]


def test_an_unfinished_frame_is_dropped() -> None:
    assert read(b'data: {"a": 1}\n\ndata: {"b"') == [{"a": 1}]


def test_other_json_than_objects_is_skipped() -> None:
    assert read(b'data: 1\n\ndata: [2]\n\ndata: {"c": 3}\n\n') == [{"c": 3}]


def test_malformed_json_is_a_cut() -> None:
    with pytest.raises(StreamCutError) as caught:
        read(b"data: {nonsense\n\n")
    assert caught.value.code == "bad_frame"


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 200, b"data: x\n" * 40])
def test_a_frame_over_the_limit_is_refused(stream: bytes) -> None:
    with pytest.raises(StreamCutError):
        read(stream, limit=100)


def test_ids_sort_by_their_time_and_are_version_7() -> None:
    ids = [uuid7() for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(made[14] == "7" and made[19] in "89ab" for made in ids)
    assert sorted(made[:8] for made in ids) == [made[:8] for made in ids]
