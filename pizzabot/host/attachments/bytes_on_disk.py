"""The bytes of attachments: a file of its id each, `<data root>/attachments/<id>`, 0600."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pizzabot.host.blobs.incoming import Incoming, private_folder
from pizzabot.host.blobs.receiving import file_failures, received
from pizzabot.host.blobs.sending import pieces_of
from pizzabot_hookspecs import InvalidRequest, Unavailable

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_NEW = ".new"


class AttachmentBytes:
    """Raises `Unavailable` `file_failed`, `InvalidRequest` `invalid_id` for what is no id of ours."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._mark = f"{secrets.token_hex(8)}-"
        self._prepared = False
        self._writing: set[str] = set()

    @asynccontextmanager
    async def arriving(
        self, content: AsyncIterator[bytes], /, *, max_bytes: int
    ) -> AsyncIterator[tuple[Incoming, str]]:
        """Bytes that are on the disk and nobody's yet, with their SHA-256."""
        if not self._prepared:
            with file_failures():
                await asyncio.to_thread(private_folder, self._root / _NEW)
            self._prepared = True
        async with received(
            self._root / _NEW, content, mark=self._mark, max_bytes=max_bytes, too_large="too_large"
        ) as found:
            yield found

    @asynccontextmanager
    async def kept(self, attachment_id: str, incoming: Incoming, /) -> AsyncIterator[None]:
        """Under its id; gone again where what is done inside fails. No sweep takes it meanwhile."""
        path = self._path(attachment_id)
        self._writing.add(attachment_id)
        try:
            with file_failures():
                await asyncio.to_thread(incoming.keep, path)
            yield
        except BaseException:
            await asyncio.shield(asyncio.to_thread(path.unlink, missing_ok=True))
            raise
        finally:
            self._writing.discard(attachment_id)

    async def read(self, attachment_id: str, /) -> bytes | None:
        """None where they are not there."""
        try:
            with file_failures():
                return await asyncio.to_thread(self._path(attachment_id).read_bytes)
        except Unavailable as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    async def size(self, attachment_id: str, /) -> int | None:
        try:
            return (await asyncio.to_thread(self._path(attachment_id).stat)).st_size
        except FileNotFoundError:
            return None

    def chunks(self, attachment_id: str, start: int, end: int, /) -> AsyncGenerator[bytes, None]:
        return pieces_of(self._path(attachment_id), start, end)

    async def remove(self, attachment_id: str, /) -> None:
        with file_failures():
            await asyncio.to_thread(self._path(attachment_id).unlink, missing_ok=True)

    async def ids(self) -> list[str]:
        """Of what is there and is not being added just now; files that a dead process left half are removed."""
        found = await asyncio.to_thread(self._look)
        return [one for one in found if one not in self._writing]

    def _look(self) -> list[str]:
        if not self._root.is_dir():
            return []
        for path in (self._root / _NEW).glob("*"):
            if not path.name.startswith(self._mark):
                path.unlink(missing_ok=True)
        return [path.name for path in self._root.iterdir() if _ID.fullmatch(path.name)]

    def _path(self, attachment_id: str) -> Path:
        if not _ID.fullmatch(attachment_id):
            raise InvalidRequest(
                "invalid_id", f"{attachment_id[:60]!r} is not the id of an attachment", fields={"id": "invalid id"}
            )
        return self._root / attachment_id
