"""A client whose commands and events go over one socket keeps the whole `TransportContract`."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from socket_client import greeted

from pizzabot.testing.transport_contract import TransportContract
from pizzabot_hookspecs import PizzabotError


class SocketClient:
    """Threads, state and stopping go over HTTP, as a page has it; everything else over one socket."""

    def __init__(self, http, socket):
        self.http = http
        self.socket = socket
        self.replies = []
        self.open = {}
        self.last = 0

    async def read(self):
        while True:
            message = await self.socket.next()
            if message["type"] == "error" and message["code"] == "no_such_subscription":
                continue  # it had ended by itself before the client unsubscribed
            if message["type"] in ("reply", "error"):
                self.replies.pop(0).set_result(message)
            elif message["sub"] in self.open:
                self.open[message["sub"]].put_nowait(message)

    async def create_thread(self, thread_id=None, /, *, metadata=None, if_exists="raise"):
        body = {"thread_id": thread_id, "metadata": metadata or {}, "if_exists": if_exists}
        return _answer(await self.http.post("/threads", json=body))

    async def state(self, thread_id, /):
        return _answer(await self.http.get(f"/threads/{thread_id}/state"))

    async def stop(self, thread_id, run_id, /):
        return _answer(await self.http.post(f"/threads/{thread_id}/runs/{run_id}/cancel?wait=1"))["status"]

    async def command(self, thread_id, body, /):
        reply = asyncio.get_running_loop().create_future()
        self.replies.append(reply)
        if isinstance(body, dict):
            await self.socket.send("command", thread=thread_id, **body)
        else:
            await self.socket.connection.send(json.dumps(body))
        answer = await reply
        if answer["type"] == "error":
            return {"type": "error", "id": None, "error": answer["code"], "message": answer["message"]}
        assert answer["thread"] == thread_id
        return answer["reply"]

    async def events(self, thread_id, /, *, channels, namespaces=(), depth=None, since=None):
        self.last += 1
        sub, self.open[self.last] = self.last, asyncio.Queue()
        wanted = {"channels": list(channels), "namespaces": [list(item) for item in namespaces]}
        await self.socket.subscribe(sub, thread_id, **wanted, depth=depth, since=since)
        try:
            while True:
                message = await self.open[sub].get()
                if message["type"] == "closed" and message["code"] == "thread_deleted":
                    return
                if message["type"] == "closed":
                    raise PizzabotError(message["code"], message["message"])
                for event in message.get("events", ()):
                    yield event
        finally:
            del self.open[sub]
            await self.socket.send("unsubscribe", sub=sub)


def _answer(response):
    body = response.json()
    if response.status_code != 200:
        raise PizzabotError(body["error"], body["detail"])
    return body


class TestSocket(TransportContract):
    """Every test of the suite."""

    @pytest.fixture(autouse=True)
    def _server(self, serve):
        self.serve = serve

    @asynccontextmanager
    async def client(self, host):
        async with (
            self.serve(host) as served,
            httpx.AsyncClient(base_url=served.address, timeout=30) as http,
            greeted(served) as socket,
        ):
            client = SocketClient(http, socket)
            reading = asyncio.create_task(client.read())
            try:
                yield client
            finally:
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
