"""A client of `GET /ws` for tests, on the `websockets` library: what came, in order, message by message."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from pizzabot.testing.scripted_host import ScriptedHost

ALL = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"]


class Socket:
    """One open socket. `next` skips pings; `events` joins `events` messages of one subscription."""

    def __init__(self, connection):
        self.connection = connection
        self.early = []

    async def send(self, kind, /, **message):
        await self.connection.send(json.dumps({"type": kind, **message}))

    async def raw(self):
        return json.loads(await self.connection.recv())

    async def next(self):
        while True:
            message = await self.raw()
            if message["type"] != "ping":
                return message

    async def hello(self, **facts):
        await self.send("hello", **facts)
        return await self.next()

    async def subscribe(self, sub, thread="t", /, *, channels=ALL, **wanted):
        await self.send("subscribe", sub=sub, thread=thread, channels=channels, **wanted)

    async def follow(self, sub, thread="t", /, **wanted):
        """Subscribe and see it confirmed."""
        await self.subscribe(sub, thread, **wanted)
        assert await self.next() == {"type": "subscribed", "sub": sub}

    async def start(self, thread, text, /, *, number=1, **more):
        messages = [{"type": "human", "content": text}]
        params = {"input": {"messages": messages}}
        await self.send("command", thread=thread, id=number, method="run.start", params=params, **more)

    async def until(self, holds):
        """Messages up to the first for which `holds`, that one last."""
        found = []
        while not found or not holds(found[-1]):
            found.append(await self.next())
        return found

    async def events(self, sub, number):
        """The next `number` events of a subscription; everything else that comes between is dropped."""
        found = []
        while len(found) < number:
            message = await self.next()
            if message["type"] == "events" and message["sub"] == sub:
                found += message["events"]
        return found

    async def closed(self):
        """The close code that the server chose; 1006 where the connection was cut."""
        try:
            while True:
                await self.connection.recv()
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd else 1006


@asynccontextmanager
async def opened(served, *, uri="/ws", **options):
    options = {"compression": None, "max_size": 2**26, "ping_interval": None, "proxy": None, **options}
    async with connect(f"ws://127.0.0.1:{served.port}{uri}", **options) as connection:
        yield Socket(connection)


@asynccontextmanager
async def greeted(served, **options):
    async with opened(served, **options) as socket:
        assert (await socket.hello())["type"] == "ready"
        yield socket


def asking(serve, test, **settings):
    """Run `test(host, served)` against a real server, at most 20 seconds."""

    async def main():
        async with asyncio.timeout(20), ScriptedHost() as host, serve(host, **settings) as served:
            await test(host, served)

    asyncio.run(main())


def talking(serve, test, **settings):
    """Run `test(socket, host, served)` with a socket that has said hello."""

    async def with_socket(host, served):
        async with greeted(served) as socket:
            await test(socket, host, served)

    asking(serve, with_socket, **settings)


def sse_events(text):
    """The JSON texts of an event stream."""
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


async def over_sse(served, thread, number, **wanted):
    """The first `number` events of the thread's event stream."""
    found = []
    body = {"channels": ALL, **wanted}
    async with (
        httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        http.stream("POST", f"/threads/{thread}/stream/events", json=body) as stream,
    ):
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
            if len(found) == number:
                break
    return found
