"""Events that are stored: whole, in order, from a cursor, by channel and namespace."""

from __future__ import annotations

from pizzabot.testing.transport_contract.base import (
    ServedContract,
    code_of,
    first_frames,
    frame_of,
    listening,
    replayed,
    say,
    within_patience,
)


class ReplayingContract(ServedContract):
    """A part of `TransportContract`."""

    @within_patience
    async def test_frames_come_whole_in_order_and_without_gaps(self) -> None:
        async with self.served() as (host, client):
            await say(host, client, "t", " ".join(f"word{n}" for n in range(700)))
            frames = await replayed(client, "t", host, since=0)
            assert frames == [frame_of(event) for event in host.events("t")]
            assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))

    @within_patience
    async def test_without_a_cursor_only_the_latest_run_is_replayed(self) -> None:
        async with self.served() as (host, client):
            await say(host, client, "t", "first")
            first_run_end = len(host.events("t"))
            await say(host, client, "t", "second")
            frames = await replayed(client, "t", host)
            assert frames == [frame_of(event) for event in host.events("t")[first_run_end:]]

    @within_patience
    async def test_a_cursor_replays_exactly_what_was_stored_after_it(self) -> None:
        async with self.served() as (host, client):
            await say(host, client, "t", "first")
            await say(host, client, "t", "second")
            frames = await replayed(client, "t", host, since=3)
            assert frames == [frame_of(event) for event in host.events("t")[3:]]

    @within_patience
    async def test_a_cursor_at_the_end_gives_only_what_comes(self) -> None:
        async with self.served() as (host, client):
            await say(host, client, "t", "first")
            end = len(host.events("t"))
            async with listening(host, client, "t", since=end) as next_frame:
                later = host.append("t", "custom", {"payload": 1})
                assert await next_frame() == frame_of(later)

    @within_patience
    async def test_only_the_channels_that_were_asked_for_come(self) -> None:
        async with self.served() as (host, client):
            await say(host, client, "t", "a b c")
            wanted = [frame_of(event) for event in host.events("t") if event.method in ("lifecycle", "values")]
            assert await first_frames(client, len(wanted), "t", channels=("lifecycle", "values"), since=0) == wanted

    @within_patience
    async def test_namespaces_and_depth_are_passed_on(self) -> None:
        async with self.served() as (host, client):
            for namespace in (("tools:1", "model_request:2"), ("model_request:3",), (), ("tools:1",)):
                host.append("t", "updates", {"at": list(namespace)}, namespace=namespace)
            root = await first_frames(client, 1, "t", channels=("updates",), namespaces=[[]], depth=0, since=0)
            tools = await first_frames(client, 2, "t", channels=("updates",), namespaces=[["tools"]], since=0)
            assert [frame["params"]["namespace"] for frame in root] == [[]]
            assert [frame["params"]["namespace"] for frame in tools] == [["tools:1", "model_request:2"], ["tools:1"]]

    @within_patience
    async def test_a_named_custom_channel_has_only_its_own_frames(self) -> None:
        async with self.served() as (host, client):
            host.append("t", "custom", {"name": "noise", "payload": 0})
            wanted = host.append("t", "custom", {"name": "weather", "payload": 21})
            assert await first_frames(client, 1, "t", channels=("custom:weather",), since=0) == [frame_of(wanted)]

    @within_patience
    async def test_every_character_arrives_as_it_was_said(self) -> None:
        text = 'snow☃ 🍕 \U0001f469\U0001f3fd\u200d\U0001f373 漢字 ع a\u2028b\u2029c\u0085d \\u2028 " \\ \t \u0000'
        async with self.served() as (host, client):
            await say(host, client, "t", text)
            frames = await replayed(client, "t", host)
            said = "".join(
                frame["params"]["data"]["delta"]["text"] for frame in frames if "delta" in frame["params"]["data"]
            )
            assert said == text
            assert (await client.state("t"))["values"]["messages"][0]["content"] == text

    @within_patience
    async def test_a_large_frame_arrives_whole(self) -> None:
        async with self.served() as (host, client):
            large = host.append("t", "values", {"messages": ["🍕" * 500_000]})
            assert await first_frames(client, 1, "t", since=0) == [frame_of(large)]

    @within_patience
    async def test_a_cursor_that_retention_overtook_gets_a_gap_first(self) -> None:
        async with self.served() as (host, client):
            for number in range(6):
                host.append("t", "custom", {"payload": number})
            host.forget_before("t", 4)
            gap, *rest = await first_frames(client, 4, "t", since=1)
            data = gap["params"]["data"]
            assert (gap["method"], data["name"]) == ("custom", "pizzabot.gap")
            assert data["payload"] == {"requested": 1, "earliest": 4, "latest": 6}
            assert [frame["seq"] for frame in rest] == [4, 5, 6]

    @within_patience
    async def test_a_cursor_beyond_the_end_is_refused(self) -> None:
        async with self.served() as (host, client):
            host.append("t", "custom", {"payload": 0})
            assert await code_of(first_frames(client, 1, "t", since=99)) == "cursor_ahead"
