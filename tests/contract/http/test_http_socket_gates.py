"""Who gets a socket, and what one client can make the server hold (spec/01 §2, spec/09)."""

import asyncio
import contextlib
import json
import os
import struct

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from socket_client import ALL, asking, greeted, opened, talking
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pizzabot_builtin_plugins.http_server.websocket.protocol import MAX_FRAGMENTS

TOKEN = "t" * 32


async def refused(served, **options):
    """The status and the error code with which a socket is refused before it opens."""
    with pytest.raises(InvalidStatus) as error:
        async with opened(served, **options):
            pass
    response = error.value.response
    return response.status_code, json.loads(response.body)["error"]


def test_ready_says_who_answers_and_what_holds(serve):
    async def test(_, served):
        async with opened(served) as socket:
            assert await socket.hello() == {
                "type": "ready",
                "service": "scripted",
                "protocolVersion": 1,
                "heartbeatSeconds": 5.0,
                "idleSeconds": 60.0,
                "maxThreads": 64,
                "maxSubscriptions": 256,
            }

    asking(serve, test)


@pytest.mark.parametrize(
    "first",
    ['{"type":"ping"}', '{"type":"subscribe","sub":1,"activity":true}', "{", "[]", b'{"type":"hello"}',
     '{"type":"hello","token":7}'],
)  # fmt: skip
def test_a_first_message_that_is_no_hello_closes_the_socket_without_an_answer(serve, first):
    async def test(host, served):
        async with opened(served) as socket:
            await socket.connection.send(first)
            with pytest.raises(ConnectionClosed) as error:
                await socket.connection.recv()
            assert error.value.rcvd.code == 4400
        await host.followed(0)

    asking(serve, test)


def test_a_client_that_says_nothing_at_first_is_closed(serve):
    async def test(_, served):
        async with opened(served) as socket:
            assert await socket.closed() == 4408

    asking(serve, test, limits={"hello_seconds": 0.05})


@pytest.mark.parametrize(
    ("header", "token", "code"),
    [
        (None, TOKEN, None),
        (f"Bearer {TOKEN}", None, None),
        (f"Bearer {TOKEN}", "wrong", None),
        ("Bearer wrong", TOKEN, None),
        (None, None, 4401),
        (None, "", 4401),
        (None, "wrong", 4401),
        (None, f"Bearer {TOKEN}", 4401),
        (None, TOKEN + "\ud800", 4401),
        ("Bearer wrong", None, 4401),
        (TOKEN, None, 4401),
    ],
)
def test_the_token_comes_in_hello_or_in_the_authorization_header(serve, header, token, code):
    async def test(host, served):
        headers = {} if header is None else {"authorization": header}
        async with opened(served, additional_headers=headers) as socket:
            await socket.send("hello", **({} if token is None else {"token": token}))
            if code is None:
                assert (await socket.next())["type"] == "ready"
            else:
                assert await socket.closed() == code
        await served.log.noticed("http.socket.ended")
        assert TOKEN not in str(served.log.lines)

    asking(serve, test, token=TOKEN)


def test_a_token_in_the_address_counts_for_nothing(serve):
    async def test(_, served):
        async with opened(served, uri=f"/ws?token={TOKEN}") as socket:
            await socket.send("hello")
            assert await socket.closed() == 4401

    asking(serve, test, token=TOKEN)


def test_a_foreign_page_is_refused_before_the_socket_opens(serve):
    async def test(host, served):
        for origin in ("https://evil.example", "null", "http://localhost:1", "http://127.0.0.1.evil.example"):
            assert await refused(served, origin=origin) == (403, "origin_not_allowed")
        for origin in (f"http://127.0.0.1:{served.port}", f"http://localhost:{served.port}", "http://localhost:5173"):
            async with greeted(served, origin=origin):
                pass
        assert len(served.log.of("http.refused")) == 4

    asking(serve, test, allowed_origins=["http://localhost:5173"])


def test_a_rebound_name_is_refused_before_the_socket_opens(serve):
    async def test(_, served):
        answer = await handshake(served, host="evil.example")
        assert answer.startswith(b"HTTP/1.1 403")
        assert b"host_not_allowed" in answer

    asking(serve, test)


async def handshake(served, *, method="GET", path="/ws", host="localhost", key="dGhlIHNhbXBsZSBub25jZQ==", more=()):
    """Everything that a server answers to a hand-written handshake, up to the end of the connection or of the head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    lines = [
        f"{method} {path} HTTP/1.1", f"host: {host}", "upgrade: websocket", "connection: upgrade, close",
        "sec-websocket-version: 13", *([f"sec-websocket-key: {key}"] if key else []), *more,
    ]  # fmt: skip
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    try:
        return await reader.read()
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@pytest.mark.parametrize(
    "wrong", [{"key": ""}, {"key": "short"}, {"more": ["sec-websocket-version: 7"]}, {"more": ["x: " + "y" * 9000]},
              {"more": [f"x{n}: y" for n in range(200)]}],
)  # fmt: skip
def test_a_handshake_that_is_none_is_answered_and_the_connection_ended(serve, wrong):
    async def test(_, served):
        assert (await handshake(served, **wrong)).startswith(b"HTTP/1.1 4")

    asking(serve, test, limits={"head_seconds": 60})


def test_upgrade_is_ignored_on_every_other_path_and_method(serve):
    async def test(_, served):
        assert (await handshake(served, path="/ping")).startswith(b"HTTP/1.1 200")
        assert (await handshake(served, path="/ws/more")).startswith(b"HTTP/1.1 404")
        assert (await handshake(served, method="POST")).startswith(b"HTTP/1.1 426")

    asking(serve, test)


def test_a_plain_request_for_the_socket_is_told_what_it_is_after_the_token(serve):
    async def test(_, served):
        async with httpx.AsyncClient(base_url=served.address) as http:
            assert (await http.get("/ws")).status_code == 401
            answer = await http.get("/ws", headers={"authorization": f"Bearer {TOKEN}"})
            assert (answer.status_code, answer.json()["error"]) == (426, "upgrade_required")

    asking(serve, test, token=TOKEN)


def test_one_socket_more_than_the_limit_is_closed_and_room_is_made_again(serve):
    async def test(host, served):
        async with greeted(served) as first:
            async with greeted(served) as second:
                await second.follow(1)
                async with opened(served) as third:
                    assert await third.closed() == 1013
            await host.observed("t", 0)
            await first.send("ping")
            assert await first.next() == {"type": "pong"}
            await ended(served, 2)
            async with greeted(served):
                pass

    asking(serve, test, limits={"sockets": 2})


async def ended(served, number):
    """Wait until so many sockets have ended."""
    while len(served.log.of("http.socket.ended")) < number:
        noticed = asyncio.Event()
        served.log.waiting.append(("http.socket.ended", noticed))
        await noticed.wait()


def test_a_socket_counts_as_a_connection_and_one_too_many_is_refused_as_a_request_is(serve):
    async def test(_, served):
        async with greeted(served), greeted(served):
            with pytest.raises(InvalidStatus) as error:
                async with opened(served):
                    pass
            assert error.value.response.status_code == 503

    asking(serve, test, limits={"connections": 3})


def test_a_message_that_is_too_large_closes_the_socket_and_a_smaller_one_does_not(serve):
    async def test(socket, host, served):
        await socket.start("t", "x" * 3000)
        assert (await socket.next())["reply"]["type"] == "success"
        await socket.start("t", "x" * 4096)
        assert await socket.closed() == 1009
        await served.log.noticed("http.socket.ended")

    talking(serve, test, limits={"json_bytes": 4096})


class Raw:
    """A socket by hand, for frames that no library sends."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, served):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(
            b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        return cls(reader, writer)

    def frame(self, opcode, data=b"", *, last=True):
        length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
        return bytes([(0x80 if last else 0) | opcode]) + length + bytes(4) + data

    async def close_code(self):
        """Read up to the server's close frame."""
        while True:
            first, length = await self.reader.readexactly(2)
            size = length if length < 126 else int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8))
            data = await self.reader.readexactly(size)
            if first & 0xF == 8:
                return int.from_bytes(data[:2])

    def cut(self):
        self.writer.transport.abort()


def test_empty_fragments_without_end_are_not_kept(serve):
    async def test(_, served):
        raw = await Raw.open(served)
        raw.writer.write(raw.frame(1, b"", last=False) + raw.frame(0, b"", last=False) * (MAX_FRAGMENTS + 10))
        assert await raw.close_code() == 1009
        raw.cut()

    asking(serve, test)


def test_a_message_in_fragments_counts_as_one(serve):
    async def test(_, served):
        raw = await Raw.open(served)
        text = b'{"type":"hello"}'
        raw.writer.write(
            raw.frame(1, text[:3], last=False)
            + b"".join(raw.frame(0, text[n : n + 1], last=False) for n in range(3, len(text)))
            + raw.frame(0)
        )
        assert b'"ready"' in await raw.reader.readuntil(b"}")
        raw.cut()

    asking(serve, test)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (lambda raw: raw.frame(1, b"\xff\xfe"), 1007),
        (lambda raw: raw.frame(3), 1002),
        (lambda raw: raw.frame(0, b"x"), 1002),
        (lambda raw: b"\x81\x01x", 1002),
        (lambda raw: raw.frame(8, struct.pack("!H", 1000)), 1000),
    ],
)
def test_what_breaks_the_protocol_below_is_closed_with_the_standard_s_code(serve, frames, code):
    async def test(_, served):
        raw = await Raw.open(served)
        raw.writer.write(frames(raw))
        assert await raw.close_code() == code
        raw.cut()
        await served.log.noticed("http.socket.ended")

    asking(serve, test)


def test_thousands_of_messages_at_once_are_answered_one_by_one(serve):
    async def test(_, served):
        raw = await Raw.open(served)
        raw.writer.write(raw.frame(1, b'{"type":"hello"}') + raw.frame(1, b'{"type":"ping"}') * 5000)
        await raw.reader.readuntil(b'"ready"')
        for _ in range(5000):
            await raw.reader.readuntil(b'"pong"')
        raw.cut()

    asking(serve, test)


def test_a_client_that_sends_pings_and_reads_no_pong_is_cut(serve):
    async def test(_, served):
        raw = await Raw.open(served)
        raw.writer.transport.pause_reading()
        raw.writer.write(raw.frame(1, b'{"type":"hello"}'))
        pings = raw.frame(9, os.urandom(125)) * 500
        while not raw.writer.is_closing():
            raw.writer.write(pings)
            with contextlib.suppress(ConnectionError):
                await raw.writer.drain()
        assert served.log.of("http.socket.ended")[0][1]["ending"] == "stalled"

    asking(serve, test, heartbeat_seconds=0.05, limits={"write_seconds": 0.2})


words = st.sampled_from(
    ["hello", "subscribe", "unsubscribe", "command", "ping", "pong", "t", "a/b", "run.start", "custom"]
)
leaves = st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False) | words | st.text(max_size=5)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
keys = st.sampled_from(
    ["type", "sub", "thread", "channels", "since", "depth", "namespaces", "activity", "id", "method", "params"]
)
messages = st.dictionaries(keys, values, max_size=6) | values


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(messages, max_size=30))
def test_no_message_ends_the_socket_or_goes_unanswered_for_ever(serve, said):
    async def test(socket, host, _):
        for message in said:
            await socket.connection.send(json.dumps(message))
        await socket.subscribe(10**6, "fine", channels=ALL)
        await socket.until(lambda message: message == {"type": "subscribed", "sub": 10**6})

    talking(serve, test)
