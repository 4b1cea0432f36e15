"""The event stream on the wire: bytes, headers, heartbeats, limits, and every way in which it ends (wire.md §3)."""

import asyncio
import json
import socket

import httpx
import pytest

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.host import ClientView

ALL = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"]


def start(text):
    return {
        "id": 1,
        "method": "run.start",
        "params": {"input": {"messages": [{"type": "human", "content": text}]}},
    }


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


class Connection:
    """One stream, read line by line over a plain socket."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, served, thread_id="t", *, headers=(), **wanted):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        body = json.dumps({"channels": ALL, **wanted}).encode()
        lines = [
            f"POST /threads/{thread_id}/stream/events HTTP/1.1",
            "host: localhost",
            "content-type: application/json",
            f"content-length: {len(body)}",
            *headers,
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return cls(reader, writer)

    async def head(self):
        return (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def chunk(self):
        """One piece of the chunked body; empty at its end."""
        size = int(await self.reader.readline(), 16)
        piece = await self.reader.readexactly(size)
        await self.reader.readline()
        return piece

    async def close(self):
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


def test_headers_and_the_opening_comment_come_at_once_for_a_thread_that_does_not_exist(serve):
    async def test(_, host, served):
        stream = await Connection.open(served, "not-yet")
        head = await stream.head()
        assert head.startswith("http/1.1 200")
        for line in ("content-type: text/event-stream", "cache-control: no-cache", "x-accel-buffering: no"):
            assert line in head
        assert await stream.chunk() == b": open\n\n"
        await stream.close()
        await host.observed("not-yet", 0)

    asking(serve, test)


def test_a_frame_is_event_data_and_id_and_what_was_stored_is_on_the_wire_byte_for_byte(serve):
    async def test(_, host, served):
        event = host.append("t", "messages", {"text": "é🍕"}, namespace=("model_request:1",), node="model", run_id="r")
        stream = await Connection.open(served)
        await stream.head()
        assert await stream.chunk() == b": open\n\n"
        expected = (
            'event: messages\ndata: {"type":"event","event_id":"synth:r:1","seq":1,"method":"messages","params":'
            '{"namespace":["model_request:1"],"timestamp":%d,"node":"model","data":{"text": "é🍕"}}}\nid: 1\n\n'
        )
        assert await stream.chunk() == (expected % event.timestamp).encode()
        await stream.close()

    asking(serve, test)


def test_frames_of_one_batch_are_written_as_one_chunk(serve):
    async def test(_, host, served):
        for number in range(50):
            host.append("t", "custom", {"payload": number})
        stream = await Connection.open(served, since=0)
        await stream.head()
        await stream.chunk()
        assert (await stream.chunk()).count(b"\nid: ") == 50
        await stream.close()

    asking(serve, test)


def test_silence_is_broken_by_single_comments_and_nothing_else(serve):
    async def test(_, host, served):
        stream = await Connection.open(served)
        await stream.head()
        assert [await stream.chunk() for _ in range(3)] == [b": open\n\n", b": heartbeat\n\n", b": heartbeat\n\n"]
        await stream.close()

    asking(serve, test, heartbeat_seconds=0.05)


def test_a_gap_is_a_custom_frame_without_an_id_and_the_first_one(serve):
    async def test(_, host, served):
        for number in range(5):
            host.append("t", "custom", {"payload": number})
        host.forget_before("t", 4)
        stream = await Connection.open(served, channels=["values"], since=1)
        await stream.head()
        await stream.chunk()
        gap = await stream.chunk()
        assert gap.startswith(b"event: custom\ndata: {")
        assert b"\nid:" not in gap
        assert json.loads(gap.splitlines()[1][6:])["params"]["data"] == {
            "name": "pizzabot.gap",
            "payload": {"requested": 1, "earliest": 4, "latest": 5},
        }
        await stream.close()

    asking(serve, test)


@pytest.mark.parametrize(
    ("headers", "body", "first"),
    [
        (["last-event-id: 2"], {}, 3),
        (["last-event-id: 2"], {"since": 1}, 2),
        (["last-event-id: -1"], {}, 1),
        ([], {"since": -1}, 1),
        ([], {"since": None, "depth": None, "namespaces": None, "unknown": {"key": 1}}, 1),
    ],
)
def test_a_cursor_comes_in_the_body_or_as_last_event_id_and_minus_one_is_none(serve, headers, body, first):
    async def test(_, host, served):
        for number in range(4):
            host.append("t", "custom", {"payload": number})
        stream = await Connection.open(served, headers=headers, **body)
        await stream.head()
        await stream.chunk()
        assert f"id: {first}\n".encode() in (await stream.chunk()).split(b"\n\n")[0] + b"\n"
        await stream.close()

    asking(serve, test)


def test_a_cursor_beyond_the_end_is_a_409_and_not_a_stream(serve):
    async def test(http, host, _):
        host.append("t", "custom", {"payload": 0})
        answer = await http.post("/threads/t/stream/events", json={"channels": ALL, "since": 9})
        assert (answer.status_code, answer.json()["error"]) == (409, "cursor_ahead")
        await host.observed("t", 0)

    asking(serve, test)


@pytest.mark.parametrize(
    ("headers", "view"),
    [
        (["user-agent: langgraph-sdk-py/0.4.14"], ClientView.PYTHON),
        (["user-agent: node"], ClientView.JS),
        ([], ClientView.JS),
    ],
)
def test_the_python_sdk_is_known_by_its_user_agent(serve, headers, view):
    async def test(_, host, served):
        host.append("t", "messages", {"a": 1}, namespace=("model_request:1",))
        stream = await Connection.open(served, headers=headers)
        await stream.head()
        await stream.chunk()
        namespace = [] if view is ClientView.PYTHON else ["model_request:1"]
        assert json.loads((await stream.chunk()).splitlines()[1][6:])["params"]["namespace"] == namespace
        await stream.close()

    asking(serve, test)


@pytest.mark.parametrize("polite", [True, False])
def test_a_client_that_goes_frees_its_observer(serve, polite):
    async def test(_, host, served):
        stream = await Connection.open(served)
        await stream.head()
        await host.observed("t")
        if polite:
            stream.writer.write_eof()
            await stream.close()
        else:
            stream.writer.transport.abort()
        await host.observed("t", 0)

    asking(serve, test)


def test_a_client_that_does_not_read_is_dropped_and_its_observer_freed(serve):
    async def test(_, host, served):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.transport.pause_reading()
        body = json.dumps({"channels": ALL, "since": 0}).encode()
        writer.write(
            b"POST /threads/t/stream/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
            + body
        )
        await host.observed("t")
        for _ in range(40):
            host.append("t", "custom", {"payload": "x" * 500_000})
        await host.observed("t", 0)
        await served.log.noticed("http.stream.stalled")
        writer.transport.abort()

    asking(serve, test, limits={"write_seconds": 0.2})


def test_one_stream_more_than_the_limit_is_refused_by_its_name_and_room_is_made_again(serve):
    async def test(http, host, served):
        first, second = await Connection.open(served), await Connection.open(served)
        await first.head()
        await second.head()
        refused = await http.post("/threads/t/stream/events", json={"channels": ALL})
        assert (refused.status_code, refused.json()["error"]) == (503, "too_many_event_streams")
        assert "event_streams" in refused.json()["detail"]
        await first.close()
        await host.observed("t", 1)
        third = await Connection.open(served)
        assert (await third.head()).startswith("http/1.1 200")
        await second.close()
        await third.close()

    asking(serve, test, limits={"event_streams": 2})


def test_when_the_server_stops_open_streams_end_cleanly_and_the_port_is_free_again(serve, make_transport):
    async def test(_, host, served):
        stream = await Connection.open(served)
        await stream.head()
        await stream.chunk()
        await host.observed("t")
        served.serving.cancel()
        assert await stream.chunk() == b""
        await asyncio.wait_for(asyncio.gather(served.serving, return_exceptions=True), 5)
        assert served.serving.cancelled()
        await host.observed("t", 0)
        await stream.close()
        async with make_transport(host, port=served.port) as again:
            await again.bind()

    asking(serve, test)


def test_a_request_that_hangs_does_not_hold_up_the_stop_for_longer_than_its_limit(serve):
    entered = []

    class Hanging(ScriptedHost):
        async def status(self, *, caller):
            entered[0].set()
            await asyncio.Event().wait()

    async def main():
        entered.append(asyncio.Event())
        async with (
            Hanging() as host,
            serve(host, limits={"stop_seconds": 0}) as served,
            httpx.AsyncClient(base_url=served.address) as http,
        ):
            asked = asyncio.create_task(http.get("/status"))
            await entered[0].wait()
            served.serving.cancel()
            await asyncio.wait_for(asyncio.gather(served.serving, return_exceptions=True), 5)
            await asyncio.gather(asked, return_exceptions=True)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unavailable("storage_gone", "the key hunter2 is bad"), "storage_gone"),
        (RuntimeError("hunter2"), "internal_error"),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_breaks_is_a_status_before_the_headers_and_a_frame_after_them(serve, error, code, when):
    async def main():
        async with ScriptedHost() as host, serve(host) as served, httpx.AsyncClient(base_url=served.address) as http:

            async def observe(*_, **__):
                if when == "before":
                    raise error

                async def batches():
                    raise error
                    yield

                return batches()

            host.runs.observe = observe
            answer = await http.post("/threads/t/stream/events", json={"channels": ALL})
            assert "hunter2" not in answer.text
            if when == "before":
                assert answer.status_code == (503 if code == "storage_gone" else 500)
                assert answer.json()["error"] == code
            else:
                assert answer.status_code == 200
                frame = json.loads(answer.text.split("data: ")[1])
                assert (frame["type"], frame["id"], frame["error"]) == ("error", None, code)

    asyncio.run(main())


WRONG_SUBSCRIPTIONS = [
    {}, [], {"channels": []}, {"channels": "values"}, {"channels": ["nonsense"]}, {"channels": [1]},
    {"channels": ["custom:"]}, {"channels": ["custom:" + "x" * 300]}, {"channels": ["values"] * 65},
    {"channels": ALL, "depth": True}, {"channels": ALL, "depth": -1}, {"channels": ALL, "depth": 1.5},
    {"channels": ALL, "since": True}, {"channels": ALL, "since": -2}, {"channels": ALL, "since": 2**60},
    {"channels": ALL, "since": "5"}, {"channels": ALL, "namespaces": "x"}, {"channels": ALL, "namespaces": ["x"]},
    {"channels": ALL, "namespaces": [[1]]}, {"channels": ALL, "namespaces": [["a"]] * 257},
    {"channels": ALL, "namespaces": [["a"] * 33]}, {"channels": ALL, "namespaces": [["a" * 257]]},
]  # fmt: skip


def test_a_subscription_that_is_wrong_is_refused_with_the_field(serve):
    async def test(http, *_):
        for body in WRONG_SUBSCRIPTIONS:
            answer = await http.post("/threads/t/stream/events", json=body)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_subscription"), body
            assert len(answer.json()["fields"]) == 1

    asking(serve, test)


def test_two_hundred_observers_get_every_byte_and_are_all_freed(serve):
    async def test(_, host, served):
        streams = [await Connection.open(served) for _ in range(200)]
        for stream in streams:
            await stream.head()
            await stream.chunk()
        await host.observed("t", 200)
        for number in range(20):
            host.append("t", "custom", {"payload": number})

        async def read(stream):
            received = b""
            while received.count(b"\nid: ") < 20:
                received += await stream.chunk()
            return received

        bodies = set(await asyncio.gather(*map(read, streams)))
        assert len(bodies) == 1
        for stream in streams:
            await stream.close()
        await host.observed("t", 0)

    asking(serve, test)
