"""`UserServers`: the source. It writes the whole file anew, atomically and for its owner alone (spec/04 §7)."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from pydantic import BaseModel, ConfigDict, field_validator

from pizzabot_builtin_plugins.user_mcp_servers.document import MAX_BYTES, Document
from pizzabot_hookspecs import Conflict, InvalidRequest, Unavailable
from pizzabot_hookspecs.mcp_servers import McpServerDefinition
from pizzabot_hookspecs.skill_sources import Origin
from pizzabot_hookspecs.wire import JsonValue

_STEP_MS = 200
"""How long changes are collected: a database in the same folder changes all the time."""


class UserServerSettings(BaseModel):
    """`[mcp_servers.user]`: `path` is the file, `<data root>/.mcp.json` without it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = None

    @field_validator("path")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        path = value.expanduser()
        if not path.is_absolute():
            raise ValueError("name the file with its whole path")
        return path


class UserServers:
    """A `McpServerSource`, `WatchesMcpServers` and `KeepsMcpServers`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = asyncio.Lock()

    async def servers(self) -> Sequence[McpServerDefinition]:
        """Raises `InvalidRequest` `invalid_mcp_file`, `Unavailable` `mcp_file_unreadable`; no file has no servers."""
        document = await asyncio.to_thread(self._read)
        return [_definition(server_id, entry, document) for server_id, entry in document.servers.items()]

    async def put(self, server_id: str, entry: Mapping[str, JsonValue], /) -> None:
        """Raises `Conflict` `mcp_file_damaged`: what cannot be read is not overwritten."""
        async with self._writing:
            await asyncio.to_thread(self._put, server_id, entry)

    async def remove(self, server_id: str, /) -> bool:
        async with self._writing:
            return await asyncio.to_thread(self._remove, server_id)

    async def changes(self) -> AsyncIterator[None]:
        """The first item comes once the watch stands: what changed before it is told, too."""
        from watchfiles import awatch

        file = self._path.resolve()
        batches = awatch(
            file.parent,
            watch_filter=lambda _change, path: Path(path).name == file.name,
            step=_STEP_MS,
            recursive=False,
        )
        async with aclosing(batches):
            batch = asyncio.ensure_future(anext(batches))
            try:
                await asyncio.sleep(0)  # one turn of the loop, in which the watch is set up
                while True:
                    yield None
                    await batch
                    batch = asyncio.ensure_future(anext(batches))
            finally:
                batch.cancel()
                await asyncio.gather(batch, return_exceptions=True)

    def _read(self) -> Document:
        try:
            with self._path.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            raw = b""
        except OSError as error:
            raise Unavailable("mcp_file_unreadable", f"{self._path} cannot be read: {error.strerror}") from error
        return Document.parse(raw, place=str(self._path))

    def _put(self, server_id: str, entry: Mapping[str, JsonValue]) -> None:
        document = self._to_change()
        document.put(server_id, entry)
        self._write(document)

    def _remove(self, server_id: str) -> bool:
        document = self._to_change()
        found = document.remove(server_id)
        if found:
            self._write(document)
        return found

    def _to_change(self) -> Document:
        try:
            document = self._read()
            document.refuse_twice()
        except InvalidRequest as error:
            raise Conflict(
                "mcp_file_damaged", f"{error.detail}; repair it first, nothing is written over it"
            ) from error
        return document

    def _write(self, document: Document) -> None:
        """A reader sees the old file or the new one. A link stays one: what it leads to is replaced."""
        target = self._path.resolve()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".mcp-", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(document.render())
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o600)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _definition(server_id: str, entry: object, document: Document) -> McpServerDefinition:
    fault = None
    if server_id in document.twice:
        fault = "its id stands in the file twice"
    elif not isinstance(entry, dict):
        fault = "its entry has to be an object"
    return McpServerDefinition(
        id=server_id, entry=entry if isinstance(entry, dict) else {}, origin=Origin.USER, fault=fault
    )
