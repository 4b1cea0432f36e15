"""`GET /threads/events`: bytes, heartbeats, what is told, and every way in which it ends."""

import asyncio
import contextlib
import json
import socket

import httpx

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_hookspecs import LOCAL, Unavailable


def asking(serve, test, **settings):
    """Run `test(http, host, served)` against a real server."""

    async def main():
        async with (
            ScriptedHost() as host,
            serve(host, **settings) as served,
            httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        ):
            await test(http, host, served)

    asyncio.run(main())


@contextlib.asynccontextmanager
async def following(http):
    """The answer, and a function that reads its next event or comment."""
    async with http.stream("GET", "/threads/events") as answer:
        lines = answer.aiter_lines()

        async def piece():
            found = []
            async for line in lines:
                if not line:
                    return found
                found.append(line)
            return None

        yield answer, piece


def test_the_first_event_is_the_whole_and_each_has_a_name_and_no_id(serve):
    async def test(http, host, _):
        await host.threads.create("t", caller=LOCAL)
        async with following(http) as (answer, piece):
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answer.headers["x-accel-buffering"] == "no"
            assert await piece() == [": open"]
            name, data = await piece()
            assert name == "event: activity"
            rows = (await http.get("/threads/list")).json()
            whole = {"type": "activity", "complete": True, "threads": rows, "deleted": [], "inbox": []}
            assert json.loads(data.removeprefix("data: ")) == whole
            await host.threads.delete("t", caller=LOCAL)
            _, data = await piece()
            gone = {"type": "activity", "complete": False, "threads": [], "deleted": ["t"]}
            assert json.loads(data.removeprefix("data: ")) == gone

    asking(serve, test)


def test_silence_is_broken_by_comments(serve):
    async def test(http, *_):
        async with following(http) as (_, piece):
            assert [await piece() for _ in range(4)][2:] == [[": heartbeat"]] * 2

    asking(serve, test, heartbeat_seconds=0.05)


def test_a_line_separator_in_a_title_does_not_end_a_line(serve):
    async def test(http, host, _):
        await host.threads.create("t", caller=LOCAL)
        host.conversation("t").title = "a\u2028b"
        async with following(http) as (_, piece):
            await piece()
            _, data = await piece()
            assert json.loads(data.removeprefix("data: "))["threads"][0]["title"] == "a\u2028b"
            assert "\u2028" not in data

    asking(serve, test)


def test_it_counts_as_an_event_stream_and_room_is_made_again(serve):
    async def test(http, host, _):
        async with following(http) as (_, piece):
            await piece()
            refused = await http.get("/threads/events")
            assert (refused.status_code, refused.json()["error"]) == (503, "too_many_event_streams")
        await host.followed(0)
        async with following(http) as (answer, _):
            assert answer.status_code == 200

    asking(serve, test, limits={"event_streams": 1})


def test_a_client_that_does_not_read_is_dropped_and_its_subscription_freed(serve):
    async def test(_, host, served):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.transport.pause_reading()
        writer.write(b"GET /threads/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await host.followed(1)
        threads = [(await host.threads.create(caller=LOCAL)).thread_id for _ in range(200)]
        while not served.log.of("http.stream.stalled"):
            for thread_id in threads:
                host.append(thread_id, "custom", {"payload": 0})
            host.set_waiting()
            await asyncio.sleep(0)
        await host.followed(0)
        writer.transport.abort()

    asking(serve, test, limits={"write_seconds": 0.2})


def test_it_ends_cleanly_when_the_host_or_the_server_stops(serve):
    async def test(http, host, served):
        async with following(http) as (_, piece):
            await piece()
            await piece()
            host.feed.close()
            assert await piece() is None
        host.feed.closed = False
        async with following(http) as (_, piece):
            await piece()
            await piece()
            served.serving.cancel()
            assert await piece() is None
        await host.followed(0)

    asking(serve, test)


def test_a_host_that_cannot_tell_is_a_status_and_not_a_stream(serve):
    async def test(http, host, _):
        async def broken(**_):
            raise Unavailable("storage_gone", "the key hunter2 is bad")

        host.activity = broken
        answer = await http.get("/threads/events")
        assert (answer.status_code, answer.json()["error"]) == (503, "storage_gone")
        assert "hunter2" not in answer.text

    asking(serve, test)
