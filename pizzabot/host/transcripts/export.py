"""A whole conversation as a file: every turn of one branch or of all, texts in full, or an error and no file.

It is one moment: what is said while it is written is not in it, and the turn that was going on says so (spec/12 §1.1,
statements 30 and 31). The file has no name, so that nothing of it stays behind.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO

from pizzabot.host.ids import checked_id
from pizzabot.host.text import to_json
from pizzabot.host.transcript import State
from pizzabot.host.transcripts.markdown import markdown_of
from pizzabot.host.transcripts.reading import Reading, TranscriptReader
from pizzabot_hookspecs import Caller, NotFound, TooLarge, Unavailable
from pizzabot_hookspecs.host import Export, ExportBranches, ExportFormat
from pizzabot_hookspecs.storage_backends import Storage, Thread

MAX_EXPORT_BYTES = 512 * 1024 * 1024
TURNS_AT_ONCE = 200
VERSION = 1
_CHUNK = 256 * 1024
_MEDIA = {ExportFormat.MARKDOWN: "text/markdown; charset=utf-8", ExportFormat.JSON: "application/json"}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")


class Exporter:
    """`export` of `pizzabot_hookspecs.host.Transcripts`."""

    def __init__(self, reader: TranscriptReader, storage: Storage) -> None:
        self._reader = reader
        self._storage = storage

    async def export(
        self,
        thread_id: str,
        /,
        *,
        format: ExportFormat = ExportFormat.MARKDOWN,  # noqa: A002 - the contract's word
        branches: ExportBranches = ExportBranches.PATH,
        caller: Caller,
    ) -> Export:
        thread = await self._storage.thread(checked_id(thread_id, what="thread_id"), caller=caller)
        if thread is None:
            raise NotFound("no_such_thread", f"there is no thread {thread_id!r}")

        async def made() -> Export:
            read = await self._reader.now(thread_id, caller=caller)
            file = await asyncio.to_thread(tempfile.TemporaryFile)
            try:
                turns = await self._write(file, thread, read, format, branches, caller=caller)
                size = await asyncio.to_thread(file.tell)
            except BaseException:
                file.close()
                raise
            name = _NOT_IN_A_NAME.sub("-", thread.title.encode("ascii", "ignore").decode())[:60].strip("-")
            return Export(
                media_type=_MEDIA[format],
                file_name=f"{name or 'conversation'}.{format.value}",
                size=size,
                as_of_seq=read.state["cursor"],
                turns=turns,
                chunks=_chunks(file),
            )

        return await self._reader.at_one_moment(made)

    async def _write(
        self,
        file: IO[bytes],
        thread: Thread,
        read: Reading,
        format: ExportFormat,  # noqa: A002 - as above
        branches: ExportBranches,
        *,
        caller: Caller,
    ) -> int:
        """Write everything; how many turns there are. Raises `TooLarge` `export_too_large`."""
        tree = await asyncio.to_thread(read.tree)
        if branches is ExportBranches.ALL:
            ids = sorted(tree.places, key=lambda one: tree.places[one].seq)
        else:
            ids = [] if tree.head is None else tree.path(tree.head)
        writer = _WRITERS[format](thread, read.state, branches, len(ids))
        await asyncio.to_thread(_put, file, writer.head())
        written = 0
        for start in range(0, len(ids), TURNS_AT_ONCE):
            some = ids[start : start + TURNS_AT_ONCE]
            state = await self._reader.load(read, thread.thread_id, some, caller=caller)
            written += await asyncio.to_thread(_put_turns, file, writer, state, some)
        if written != len(ids):
            raise Unavailable("export_failed", f"{len(ids) - written} turns could not be read; nothing was exported")
        await asyncio.to_thread(_put, file, writer.end())
        return written


class _Json:
    def __init__(self, thread: Thread, state: State, branches: ExportBranches, turns: int) -> None:
        self._first = True
        self._about = {
            "version": VERSION,
            "threadId": thread.thread_id,
            "title": thread.title,
            "exportedAt": datetime.now(UTC).isoformat(),
            "asOfSeq": state["cursor"],
            "head": state["head"],
            "branches": branches.value,
            "turnCount": turns,
        }

    def head(self) -> bytes:
        return to_json(self._about)[:-1] + b',"turns":['

    def turn(self, state: State, turn_id: str) -> bytes:
        comma, self._first = b"" if self._first else b",", False
        turn = state["turns"][turn_id]
        runs = [state["runs"][run_id] for run_id in turn["runs"] if run_id in state["runs"]]
        shown = {key: value for key, value in turn.items() if key not in ("open", "calls", "graphs")}
        return comma + b"\n" + to_json({**shown, "runs": runs})

    def end(self) -> bytes:
        return b"\n]}\n"


class _Markdown:
    def __init__(self, thread: Thread, state: State, branches: ExportBranches, turns: int) -> None:
        self._thread = thread
        self._state = state
        self._all = branches is ExportBranches.ALL
        self._turns = turns

    def head(self) -> bytes:
        at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        title = " ".join(self._thread.title.split()) or "Conversation"
        counted = f"{self._turns} turn{'' if self._turns == 1 else 's'}"
        which = "all branches" if self._all else "one branch"
        return f"# {title}\n\n{counted}, {which}, as of event {self._state['cursor']}, {at}.\n".encode()

    def turn(self, state: State, turn_id: str) -> bytes:
        return markdown_of(state, turn_id, siblings=self._all).encode("utf-8", "replace")

    def end(self) -> bytes:
        return b""


_WRITERS: Mapping[ExportFormat, type[_Json | _Markdown]] = {
    ExportFormat.JSON: _Json,
    ExportFormat.MARKDOWN: _Markdown,
}


def _put_turns(file: IO[bytes], writer: _Json | _Markdown, state: State, turn_ids: Sequence[str]) -> int:
    known = [turn_id for turn_id in turn_ids if turn_id in state["turns"]]
    for turn_id in known:
        _put(file, writer.turn(state, turn_id))
    return len(known)


def _put(file: IO[bytes], data: bytes) -> None:
    if file.tell() + len(data) > MAX_EXPORT_BYTES:
        raise TooLarge("export_too_large", f"the conversation is larger than {MAX_EXPORT_BYTES} bytes")
    file.write(data)


async def _chunks(file: IO[bytes]) -> AsyncGenerator[bytes, None]:
    try:
        await asyncio.to_thread(file.seek, 0)
        while data := await asyncio.to_thread(file.read, _CHUNK):
            yield data
    finally:
        file.close()
