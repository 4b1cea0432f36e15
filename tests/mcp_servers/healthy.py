"""A server written with the `mcp` package, over stdio or on a socket that it is handed: `healthy.py [http|sse FD]`."""

# ruff: noqa: ASYNC240 - a third party's server

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import AudioContent, CallToolResult, ImageContent, ResourceLink, TextContent, ToolAnnotations

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

server = FastMCP("healthy", log_level="CRITICAL")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(description=" ")
def environment() -> str:
    return ",".join(sorted(os.environ))


@server.tool(annotations=ToolAnnotations(idempotentHint=True))
def variable(name: str) -> str:
    """The value of a variable."""
    return os.environ.get(name, "unset")


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("the printer is on fire")


@server.tool()
def fail_with(name: str) -> str:
    """Fails and tells a variable, as servers tell the headers they were sent."""
    raise ValueError(f"401 for {os.environ[name]}")


@server.tool()
def die() -> str:
    """Ends the server."""
    print("out of paper", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def wait_for(path: str) -> str:
    """Writes `path`.begun, waits until `path` exists; writes `path`.cancelled when it is cancelled."""
    Path(path + ".begun").touch()
    try:
        while not Path(path).exists():  # noqa: ASYNC110 - a file is what the test can write
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        Path(path + ".cancelled").touch()
        raise
    return "seen"


@server.tool()
def pids() -> str:
    """Its own number and that of a child that it leaves running."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return f"{os.getpid()} {child.pid}"


@server.tool()
async def grow(context: Context) -> str:
    """Adds the tool `grown` and tells that tools have changed."""
    server.add_tool(lambda: "grown", name="grown", description="Was not there before.")
    await context.session.send_tool_list_changed()
    return "told"


@server.tool()
def long(characters: int) -> str:
    """A long text."""
    return "x" * characters


@server.tool()
def config(config: str, run_manager: str, self_: str = "s", callbacks: str = "c") -> str:
    """Arguments called as LangChain's own."""
    return f"{config} {run_manager} {callbacks}"


@server.tool()
def link(uri: str) -> CallToolResult:
    """A link to `uri`."""
    return CallToolResult(content=[ResourceLink(type="resource_link", uri=uri, name="A page")])


@server.tool()
def mixed() -> CallToolResult:
    """Every kind of content."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="hello"),
            ImageContent(type="image", data=PIXEL, mimeType="image/png"),
            AudioContent(type="audio", data="AAAA", mimeType="audio/wav"),
            ResourceLink(type="resource_link", uri="https://example.org/a", name="A page", description="about a"),
        ],
        structuredContent={"answer": 42},
    )


@server.tool()
def choose(shape: dict[str, Any] | list[str] | None, size: int | None = None) -> str:
    """A union, and a number that may be missing."""
    return f"{shape} {size}"


def serve(kind: str, descriptor: int) -> None:
    import uvicorn

    app = server.sse_app() if kind == "sse" else server.streamable_http_app()
    listening = socket.socket(fileno=descriptor)
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listening]))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        serve(sys.argv[1], int(sys.argv[2]))
    else:
        server.run()
