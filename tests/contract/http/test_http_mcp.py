"""The routes of MCP servers over a real listener: what they pass on and what they answer (spec/01 §8)."""

import asyncio

import httpx
import pytest

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_hookspecs import Conflict, NotFound

ROW = {"id": "s", "status": "loading"}


class Servers:
    """Keeps what it was asked; an id that begins with `used` is in use, `none` is not there."""

    def __init__(self):
        self.asked = []

    def _answer(self, *asked):
        self.asked.append(asked)
        server_id = asked[1] if len(asked) > 1 else ""
        if server_id == "used":
            raise Conflict("resource_in_use", "used by 1 enabled skills", fields={"sums": "Sums"})
        if server_id == "connected":
            raise Conflict("mcp_not_reconnectable", "it is connected")
        if server_id == "none":
            raise NotFound("no_such_server", "there is no MCP server 'none'")
        return ROW

    async def listing(self, *, caller):
        self._answer("listing")
        return {"servers": [ROW], "problems": []}

    async def get(self, server_id, /, *, caller):
        self._answer("get", server_id)
        return {"id": server_id, "source": "user", "entry": {"command": "x"}}

    async def create(self, server_id, entry, /, *, caller):
        return self._answer("create", server_id, entry)

    async def replace(self, server_id, entry, /, *, caller):
        return self._answer("replace", server_id, entry)

    async def delete(self, server_id, /, *, caller):
        self._answer("delete", server_id)
        return {"deleted": True}

    async def enable(self, server_id, enabled, /, *, caller):
        return self._answer("enable", server_id, enabled)

    async def reconnect(self, server_id, /, *, caller):
        return self._answer("reconnect", server_id)

    async def tools(self, server_id, /, *, caller):
        self._answer("tools", server_id)
        return {"tools": [{"name": "add", "description": "adds"}]}


def asking(serve, test):
    async def main():
        async with ScriptedHost() as host:
            host.mcp_servers = Servers()
            async with serve(host) as served, httpx.AsyncClient(base_url=served.address, timeout=20) as http:
                await test(http, host.mcp_servers)

    asyncio.run(main())


def test_each_route_passes_on_what_it_was_sent(serve):
    async def test(http, servers):
        entry = {"command": "x", "env": {"A": "${A}"}}
        for method, path, body, status, asked in [
            ("GET", "/mcp-servers", None, 200, ("listing",)),
            ("GET", "/mcp-servers/s", None, 200, ("get", "s")),
            ("GET", "/mcp-servers/s/tools", None, 200, ("tools", "s")),
            ("POST", "/mcp-servers", {"id": "s", **entry}, 201, ("create", "s", entry)),
            ("POST", "/mcp-servers", {"id": "s", "entry": entry}, 201, ("create", "s", entry)),
            ("PATCH", "/mcp-servers/s", entry, 200, ("replace", "s", entry)),
            ("PATCH", "/mcp-servers/s", {"entry": entry}, 200, ("replace", "s", entry)),
            ("DELETE", "/mcp-servers/s", None, 200, ("delete", "s")),
            ("PUT", "/mcp-servers/s/enabled", {"enabled": False}, 200, ("enable", "s", False)),
            ("POST", "/mcp-servers/s/reconnect", None, 200, ("reconnect", "s")),
        ]:
            answer = await http.request(method, path, json=body)
            assert (answer.status_code, servers.asked[-1]) == (status, asked), (method, path)
            assert answer.headers["content-type"] == "application/json"

    asking(serve, test)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/mcp-servers", {"command": "x"}),
        ("POST", "/mcp-servers", {"id": 5, "command": "x"}),
        ("POST", "/mcp-servers", {"id": "s", "entry": "x"}),
        ("POST", "/mcp-servers", [1]),
        ("PUT", "/mcp-servers/s/enabled", {"enabled": "yes"}),
        ("PUT", "/mcp-servers/s/enabled", None),
    ],
)
def test_a_body_that_is_wrong_is_400_and_nothing_is_done(serve, method, path, body):
    async def test(http, servers):
        answer = await http.request(method, path, json=body)
        assert answer.status_code == 400
        assert answer.json()["fields"]
        assert servers.asked == []

    asking(serve, test)


def test_what_stands_in_the_way_is_named(serve):
    async def test(http, _):
        for method, path, body in [
            ("PATCH", "/mcp-servers/used", {"command": "x"}),
            ("DELETE", "/mcp-servers/used", None),
            ("PUT", "/mcp-servers/used/enabled", {"enabled": False}),
        ]:
            answer = await http.request(method, path, json=body)
            assert answer.status_code == 409
            assert answer.json()["error"] == "resource_in_use"
            assert answer.json()["blockers"] == [{"id": "sums", "name": "Sums"}]
        answer = await http.post("/mcp-servers/connected/reconnect")
        assert (answer.status_code, answer.json()["error"]) == (409, "mcp_not_reconnectable")
        assert (await http.get("/mcp-servers/none")).status_code == 404

    asking(serve, test)
