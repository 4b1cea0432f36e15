"""Events as they come: across runs, for several observers, until a thread or a client goes."""

from __future__ import annotations

import asyncio

from pizzabot.testing.transport_contract.base import (
    ServedContract,
    ended,
    frame_of,
    listening,
    start,
    until_terminal,
    within_patience,
)
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import ThreadStatus


class FollowingContract(ServedContract):
    """A part of `TransportContract`."""

    @within_patience
    async def test_a_connection_goes_on_across_runs(self) -> None:
        async with self.served() as (host, client), listening(host, client, "t") as next_frame:
            for text in ("first", "second"):
                await client.command("t", start(text))
                await host.settled("t")
            expected = [frame_of(event) for event in host.events("t")]
            assert [await next_frame() for _ in expected] == expected

    @within_patience
    async def test_an_unknown_thread_is_silence_and_then_its_first_run(self) -> None:
        async with self.served() as (host, client), listening(host, client, "not-yet") as next_frame:
            await client.command("not-yet", start("hello"))
            first = await next_frame()
            assert (first["seq"], first["params"]["data"]["event"]) == (1, "running")

    @within_patience
    async def test_a_client_that_leaves_frees_its_observer_and_not_the_run(self) -> None:
        async with self.served() as (host, client):
            async with listening(host, client, "t") as next_frame:
                await client.command("t", start("hold on"))
                await next_frame()
            await host.observed("t", 0)
            assert (await host.threads.get("t", caller=LOCAL)).status is ThreadStatus.BUSY

    @within_patience
    async def test_observers_at_the_same_time_get_the_same_frames(self) -> None:
        async with self.served() as (host, client):
            readers = [asyncio.create_task(until_terminal(client, "t")) for _ in range(8)]
            await host.observed("t", len(readers))
            await client.command("t", start("one two three four five"))
            seen = await asyncio.gather(*readers)
            assert all(frames == [frame_of(event) for event in host.events("t")] for frames in seen)

    @within_patience
    async def test_a_stream_ends_when_its_thread_is_deleted(self) -> None:
        async with self.served() as (host, client), listening(host, client, "t") as next_frame:
            event = host.append("t", "custom", {"payload": 0})
            assert await next_frame() == frame_of(event)
            await host.threads.delete("t", caller=LOCAL)
            assert await ended(next_frame)
