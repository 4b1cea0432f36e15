# ruff: noqa: TID253 - imported when the first server is connected
"""The stdio transport on our own child processes: a guarded process group, stderr kept, every line bounded.

The MCP package starts its child itself: its stderr is a file, a killed server leaves its children behind, and a line
may have any length.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage

from pizzabot_builtin_plugins.mcp_client.lines import Lines, LineTooLong
from pizzabot_builtin_plugins.mcp_client.link import Link
from pizzabot_builtin_plugins.mcp_client.settings import INHERITED
from pizzabot_hookspecs.mcp_clients import McpEndpoint
from pizzabot_hookspecs.support import processes

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

_CHUNK_BYTES = 65_536
_EXIT_SECONDS = 1.0
"""How long a server that closed its stdout may take to tell its exit code."""
_LAST_WORDS_SECONDS = 0.5
_NOT_STARTED = 127


@asynccontextmanager
async def stdio_streams(
    endpoint: McpEndpoint, link: Link, *, inherit: Sequence[str]
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The streams of a session with a child that is gone, with all it started, when the block is left."""
    try:
        process = await processes.start(
            [endpoint.command, *endpoint.args],
            env=_environment(endpoint, inherit),
            cwd=endpoint.cwd,
            guarded=True,
        )
    except (OSError, ValueError) as error:
        raise link.failure(f"cannot be started: {error}") from error
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    tail = processes.Tail(_CHUNK_BYTES, sink=link.said)
    assert process.stderr is not None  # noqa: S101 - `start` puts it on a pipe
    stderr = asyncio.create_task(tail.drain(process.stderr), name=f"mcp {endpoint.id} stderr")
    reader = asyncio.create_task(_read(process, to_session, link, stderr), name=f"mcp {endpoint.id} stdout")
    writer = asyncio.create_task(_write(process, from_session), name=f"mcp {endpoint.id} stdin")
    leaving = asyncio.create_task(_tell_exit(process, link, stderr), name=f"mcp {endpoint.id} exit")
    tasks = (reader, writer, stderr, leaving)
    try:
        yield incoming, outgoing
    finally:
        try:
            await processes.terminate_group(process)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()


def _environment(endpoint: McpEndpoint, inherit: Sequence[str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in (*INHERITED, *inherit) if name in os.environ}
    return {**kept, **endpoint.env}


async def _read(
    process: Process,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    link: Link,
    stderr: asyncio.Task[None],
) -> None:
    assert process.stdout is not None  # noqa: S101 - `start` puts it on a pipe
    lines = Lines()
    async with to_session:
        while chunk := await process.stdout.read(_CHUNK_BYTES):
            try:
                for line in lines.feed(chunk, link.most_bytes):
                    await _pass_on(line, to_session, link)
            except LineTooLong:
                link.too_long()
        link.end(await _ending(process, link, stderr))


async def _pass_on(line: bytes, to_session: MemoryObjectSendStream[SessionMessage | Exception], link: Link) -> None:
    try:
        # The package's way through pydantic takes 60 ms for 5,000 tools, on the loop; this takes 5.
        message = JSONRPCMessage.model_validate(orjson.loads(line))
    except ValueError:
        link.noise(line)
        return
    # Once the session is over, what still comes is read and dropped: a full pipe would keep the child from ending.
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await to_session.send(SessionMessage(message))


async def _tell_exit(process: Process, link: Link, stderr: asyncio.Task[None]) -> None:
    """Its stdout may stay open: whatever it left running has it, too."""
    await _exit_of(process).wait()
    link.end(await _ending(process, link, stderr))


def _exit_of(process: Process) -> asyncio.Event:
    """Set when it exits. `Process.wait` may wait for its pipes as well (python/cpython#119710)."""
    left = asyncio.Event()
    protocol = process._protocol  # type: ignore[attr-defined]  # noqa: SLF001  no public way to hear of it
    told = protocol.process_exited

    def exited() -> None:
        told()
        left.set()

    protocol.process_exited = exited
    if process.returncode is not None:
        left.set()
    return left


async def _ending(process: Process, link: Link, stderr: asyncio.Task[None]) -> str:
    try:
        async with asyncio.timeout(_EXIT_SECONDS):
            code = await processes.exited(process)
    except TimeoutError:
        return f"closed its stdout{link.last_words()}"
    await asyncio.wait({stderr}, timeout=_LAST_WORDS_SECONDS)
    if code == _NOT_STARTED:
        return f"cannot be started{link.last_words()}"
    if code < 0:
        return f"was ended by signal {-code}{link.last_words()}"
    return f"ended with exit code {code}{link.last_words()}"


async def _write(process: Process, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None  # noqa: S101 - `start` puts it on a pipe
    async with from_session:
        async for sent in from_session:
            text = sent.message.model_dump_json(by_alias=True, exclude_none=True)
            try:
                process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                return  # the reader tells the end
