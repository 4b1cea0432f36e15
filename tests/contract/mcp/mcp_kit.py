"""Servers and hosts for the tests of MCP: real processes, real sockets on loopback, events to wait on."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from pizzabot.host.mcp.board import BoardSettings, McpBoard
from pizzabot.host.mcp.enablement import ServerEnablement
from pizzabot.host.mcp.retiring import Retiring
from pizzabot.host.mcp.slots import Slots
from pizzabot.host.mcp.supervisor import Services
from pizzabot.testing.hosts import host
from pizzabot_hookspecs import LOCAL, InvalidRequest
from pizzabot_hookspecs.mcp_clients import McpEndpoint, McpTransport

SERVERS = Path(__file__).parents[2] / "mcp_servers"


class Log:
    """A logger that keeps what it is told."""

    def __init__(self):
        self.lines = []

    def __getattr__(self, level):
        return lambda event, **facts: self.lines.append((level, event, facts))

    def events(self):
        return [event for _, event, _ in self.lines]


def endpoint(script, *args, **more):
    return McpEndpoint(
        id="test",
        transport=McpTransport.STDIO,
        command=sys.executable,
        args=[str(SERVERS / script), *args],
        **more,
    )


def entry(script, *args, **more):
    """The same as `.mcp.json` has it."""
    return {"command": sys.executable, "args": [str(SERVERS / script), *args], **more}


async def call(tool, **arguments):
    return await tool.ainvoke({"type": "tool_call", "name": tool.name, "args": arguments, "id": "call-1"})


def by_name(tools):
    return {tool.name: tool.tool for tool in tools}


async def appears(path):
    """Until a server has written the file."""
    from watchfiles import awatch

    if path.exists():
        return
    watching = awatch(path.parent, recursive=False, step=20, rust_timeout=100, yield_on_timeout=True)
    async with contextlib.aclosing(watching) as changes:
        async for _ in changes:
            if path.exists():
                return


class Remote:
    """`healthy.py` over HTTP or SSE; a restarted one has the same socket, so nobody has to wait for it."""

    def __init__(self, kind):
        self.kind = kind
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._process = None
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/{'sse' if kind == 'sse' else 'mcp'}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self._socket.close()

    def start(self):
        descriptor = self._socket.fileno()
        command = [sys.executable, str(SERVERS / "healthy.py"), self.kind, str(descriptor)]
        self._process = subprocess.Popen(command, pass_fds=[descriptor])

    def kill(self):
        self._process.kill()
        self._process.wait()

    def endpoint(self, **more):
        return McpEndpoint(id="remote", transport=McpTransport(self.kind), url=self.url, **more)


@contextlib.contextmanager
def refusing(status, **headers):
    """An HTTP server that answers everything with this status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.do_GET()

        def do_GET(self):
            self.send_response(status)
            for name, value in {**headers, "content-length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.asynccontextmanager
async def hosted(tmp_path, servers, *, mcp=None, plugins=(), environ=None):
    """A whole host with these servers in its `.mcp.json`; without `servers` the file is left as it is."""
    if servers is not None:
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    settings = {"storage": {"use": "memory"}, "mcp": mcp or {}}
    async with host(data_root=tmp_path, settings=settings, plugins=plugins, environ=environ) as opened:
        await opened.mcp_board.ready()
        yield opened


class Watch:
    """Waits for states of a board without asking again and again. `seen` are the statuses of each server in order."""

    def __init__(self, board):
        self._board = board
        self._changed = asyncio.Event()
        self.seen = {}
        board.on_change(self._look)
        self._look()

    def _look(self):
        for server_id, state in self._board.states().items():
            seen = self.seen.setdefault(server_id, [])
            if not seen or seen[-1] != state.status.value:
                seen.append(state.status.value)
        self._changed.set()

    async def until(self, server_id, *statuses, seconds=30):
        async with asyncio.timeout(seconds):
            while (state := self._board.states().get(server_id)) is None or state.status.value not in statuses:
                self._changed.clear()
                await self._changed.wait()
        return self._board.states()[server_id]

    async def tools(self, server_id, name, seconds=10):
        """Until the server has the tool."""
        async with asyncio.timeout(seconds):
            while name not in self._board.states()[server_id].tools:
                self._changed.clear()
                await self._changed.wait()
        return self._board.states()[server_id]


async def listed(opened):
    answer = await opened.mcp_servers.listing(caller=LOCAL)
    return {row["id"]: row for row in answer["servers"]}


class ScriptedConnection:
    """A session of the scripted client. `end` is a crash of the server."""

    def __init__(self, server_id, tools=(), stderr=()):
        self.server_id = server_id
        self.tools = tools
        self._stderr = stderr
        self._ended = asyncio.get_running_loop().create_future()
        self.close_calls = 0
        self.gone = asyncio.Event()
        self.pings = 0
        self.deaf = False

    def stderr(self):
        return self._stderr

    async def closed(self):
        return await asyncio.shield(self._ended)

    async def ping(self):
        self.pings += 1
        if self.deaf:
            await asyncio.Event().wait()

    async def close(self):
        self.close_calls += 1
        self.gone.set()

    def end(self, why):
        self._ended.set_result(why)


class ScriptedClient:
    """A client whose `behave(endpoint)` returns a connection or raises; it knows how many connect at once."""

    def __init__(self, behave=None):
        self.behave = behave or (lambda endpoint: ScriptedConnection(endpoint.id))
        self.connections = []
        self.asked = []
        self.at_once = self.most_at_once = 0
        self.gate = None

    async def connect(self, endpoint, /, *, max_tools):
        self.asked.append(endpoint)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.gate is not None:
                await self.gate(endpoint)
            made = self.behave(endpoint)
            self.connections.append(made)
            return made
        finally:
            self.at_once -= 1

    def of(self, server_id):
        return [made for made in self.connections if made.server_id == server_id]


class Source:
    """Definitions that a test changes; `change` tells the host."""

    def __init__(self, *definitions):
        self.definitions = list(definitions)
        self.error = None
        self._changed = asyncio.Event()

    async def servers(self):
        if self.error is not None:
            raise self.error
        return self.definitions

    async def changes(self):
        while True:
            await self._changed.wait()
            self._changed.clear()
            yield None

    def change(self):
        self._changed.set()


class Settings:
    """`SettingStorage` in memory."""

    def __init__(self):
        self.values = {}

    async def setting(self, key, /, *, caller):
        return self.values.get(key)

    async def put_setting(self, key, value, /, *, caller):
        self.values[key] = value


class Secrets:
    def __init__(self, **values):
        self.values = values

    def resolve(self, reference, /):
        name = reference[2:-1]
        if name not in self.values:
            raise InvalidRequest("unset_secret", f"secret {reference} is not set")
        return self.values[name]


@contextlib.asynccontextmanager
async def boarded(client, *sources, runs_ended=None, trusted=(), storage=None, secrets=None, slots=None, **figures):
    """A board on a scripted client, started, its sources read."""

    async def make_sources():
        return [(f"source-{number}", source) for number, source in enumerate(sources)]

    async def make_client():
        return client

    async def never():
        await asyncio.Event().wait()

    log = Log()
    figures = {"connect_seconds": 5, "call_seconds": 5, "ping_seconds": 60, "max_tools": 500, **figures}
    services = Services(
        client=make_client,
        slots=slots or Slots(3),
        retiring=Retiring(runs_ended or never, log),
        redact=lambda text: text.replace("hunter2", "<redacted>"),
        conceal=lambda text: text.replace("hunter2", "<redacted>"),
        logger=log,
        clock=lambda: 1_000.0,
        **figures,
    )
    board = McpBoard(
        services=services,
        sources=make_sources,
        secrets=secrets or Secrets(),
        enablement=ServerEnablement(storage or Settings()),
        settings=BoardSettings(trusted=trusted, environ={"PATH": "/bin"}),
        logger=log,
    )
    board.start()
    await board.ready()
    try:
        yield board
    finally:
        await board.close()
