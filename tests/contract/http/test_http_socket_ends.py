"""Every way in which a socket ends, what its client hears, and that nothing of it is left."""

import asyncio
import contextlib
import socket as sockets

import httpx
import pytest
from socket_client import asking, greeted, opened, talking
from websockets.exceptions import ConnectionClosed

from pizzabot.testing.scripted_host import ScriptedHost


async def all_observed(host, threads):
    for thread in threads:
        await host.observed(thread)


@pytest.mark.parametrize("polite", [True, False])
def test_a_client_that_goes_leaves_no_observer_and_no_task(serve, polite):
    async def test(host, served):
        async with httpx.AsyncClient(base_url=served.address) as http:
            await http.get("/ping")
        before = asyncio.all_tasks()
        async with greeted(served) as socket:
            for number in range(20):
                await socket.follow(number, f"t{number}")
            await socket.send("subscribe", sub=99, activity=True)
            await host.followed()
            await all_observed(host, [f"t{number}" for number in range(20)])
            if not polite:
                socket.connection.transport.abort()
                await socket.connection.wait_closed()
        await served.log.noticed("http.socket.ended")
        for number in range(20):
            await host.observed(f"t{number}", 0)
        await host.followed(0)
        left = {task for task in asyncio.all_tasks() - before if not task.done()}
        await asyncio.wait_for(asyncio.gather(*left, return_exceptions=True), 5)
        assert asyncio.all_tasks() <= before

    asking(serve, test)


def test_when_the_server_stops_each_subscription_is_told_and_then_the_socket_closed(serve, make_transport):
    async def test(host, served):
        async with greeted(served) as socket, opened(served) as silent:
            await socket.follow(1)
            await socket.follow(2, "other")
            await socket.send("subscribe", sub=3, activity=True)
            await socket.until(lambda message: message["type"] == "activity")
            served.serving.cancel()
            told = [await socket.next() for _ in range(3)]
            assert [(message["type"], message["sub"], message["code"]) for message in told] == [
                ("closed", sub, "stopping") for sub in (1, 2, 3)
            ]
            assert await socket.closed() == 1001
            assert await silent.closed() == 1001
        await asyncio.wait_for(asyncio.gather(served.serving, return_exceptions=True), 5)
        await host.observed("t", 0)
        await host.followed(0)
        async with make_transport(host, port=served.port) as again:
            await again.bind()

    asking(serve, test)


@pytest.mark.parametrize("stop_seconds", [0, 3])
def test_clients_that_do_not_read_or_answer_do_not_hold_up_the_stop(serve, stop_seconds):
    async def test(host, served):
        async with contextlib.AsyncExitStack() as stack:
            deaf = await stack.enter_async_context(greeted(served))
            await deaf.follow(1)
            deaf.connection.transport.pause_reading()
            for _ in range(40):
                host.append("t", "custom", {"payload": "x" * 500_000})
            stack.callback(deaf.connection.transport.abort)
            served.serving.cancel()
            began = asyncio.get_running_loop().time()
            await asyncio.wait({served.serving}, timeout=8)
            assert served.serving.done()
            assert asyncio.get_running_loop().time() - began < stop_seconds + 1.5
            await host.observed("t", 0)

    asking(serve, test, limits={"stop_seconds": stop_seconds})


def test_a_socket_that_comes_while_the_server_stops_is_told_so(serve):
    async def test(host, served):
        served.transport._sockets.end_all()
        async with opened(served) as socket:
            assert await socket.closed() == 1001

    asking(serve, test)


def test_a_client_that_does_not_read_is_cut_and_others_lose_nothing(serve):
    async def test(host, served):
        raw = sockets.socket()
        raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", served.port))
        async with greeted(served) as other, opened(served, sock=raw) as deaf:
            await deaf.hello()
            await deaf.follow(1)
            await deaf.follow(2, "quiet")
            await other.follow(1)
            deaf.connection.transport.pause_reading()
            for _ in range(40):
                host.append("t", "custom", {"payload": "x" * 500_000})
            assert [event["seq"] for event in await other.events(1, 40)] == list(range(1, 41))
            await served.log.noticed("http.socket.ended")
            await host.observed("t", 1)
            await host.observed("quiet", 0)
            deaf.connection.transport.abort()
        assert served.log.of("http.socket.ended")[0][1]["ending"] == "stalled"

    asking(serve, test, limits={"write_seconds": 0.2})


def test_a_slow_reader_gets_every_event_in_order(serve):
    """More than the host holds for it: it is sent back to the log."""

    async def test(host, served):
        number = 5000
        async with greeted(served, max_queue=1) as socket:
            await socket.follow(1, since=0)
            socket.connection.transport.pause_reading()
            for n in range(number):
                host.append("t", "custom", {"payload": n, "more": "x" * 1000})
            socket.connection.transport.resume_reading()
            events = await socket.events(1, number)
            assert [event["params"]["data"]["payload"] for event in events] == list(range(number))

    asking(serve, test)


def test_a_client_that_is_silent_is_closed_and_one_that_answers_pings_is_not(serve):
    async def test(_, served):
        async with greeted(served) as silent, greeted(served) as alive:
            gone = asyncio.create_task(silent.closed())
            pings = 0
            while not gone.done() or pings < 20:
                assert (await alive.raw())["type"] == "ping"
                pings += 1
                await alive.send("pong")
            assert await gone == 4408
            await alive.send("ping")
            assert await alive.next() == {"type": "pong"}

    asking(serve, test, heartbeat_seconds=0.05, limits={"socket_idle_seconds": 0.4})


def test_silence_is_broken_by_pings_alone(serve):
    async def test(socket, *_):
        await socket.follow(1)
        assert [await socket.raw() for _ in range(3)] == [{"type": "ping"}] * 3

    talking(serve, test, heartbeat_seconds=0.05)


def test_a_command_that_was_read_is_carried_out_when_its_client_goes(serve):
    async def main():
        async with asyncio.timeout(20), ScriptedHost() as host, serve(host) as served:
            entered, go, right = asyncio.Event(), asyncio.Event(), host.runs.command

            async def command(*given, **named):
                entered.set()
                await go.wait()
                return await right(*given, **named)

            host.runs.command = command
            async with greeted(served) as socket:
                await socket.start("t", "hello there")
                await socket.start("t", "and again", number=2)
                await socket.send("ping")
                await socket.until(lambda message: message["type"] == "pong")
                await entered.wait()
            go.set()
            await served.log.noticed("http.socket.ended")
            assert [body["id"] for _, body, _, _ in host.calls] == [1, 2]

    asyncio.run(main())


def test_a_command_that_hangs_does_not_hold_up_the_stop(serve):
    async def main():
        async with asyncio.timeout(20), ScriptedHost() as host, serve(host) as served:
            entered, cancelled = asyncio.Event(), asyncio.Event()

            async def command(*_, **__):
                entered.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()

            host.runs.command = command
            async with greeted(served) as socket:
                await socket.start("t", "hello")
                await entered.wait()
                served.serving.cancel()
                assert await socket.closed() == 1001
                await cancelled.wait()
                await asyncio.wait_for(asyncio.gather(served.serving, return_exceptions=True), 5)

    asyncio.run(main())


def test_what_nobody_foresaw_closes_the_socket_and_is_logged(serve):
    async def main():
        async with asyncio.timeout(20), ScriptedHost() as host, serve(host) as served:
            async with opened(served) as socket:
                host.identity = lambda: 1 // 0
                await socket.send("hello")
                with pytest.raises(ConnectionClosed) as error:
                    await socket.connection.recv()
                assert error.value.rcvd.code == 1011
            assert isinstance(served.log.of("http.socket.failed")[0][1]["exc_info"], ZeroDivisionError)

    asyncio.run(main())


def test_an_end_is_logged_with_its_reason_and_no_address_of_a_token(serve):
    async def test(host, served):
        async with greeted(served, uri="/ws?secret=1") as socket:
            await socket.follow(1)
        await served.log.noticed("http.socket.ended")
        ((level, facts),) = served.log.of("http.socket.ended")
        assert (level, facts["ending"]) == ("info", "left")
        assert facts["request_id"]
        assert "secret" not in str(served.log.lines)

    asking(serve, test)
