"""`SqliteTranscripts`: the contract's `TranscriptStorage`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from pizzabot_builtin_plugins.sqlite_storage import facts, transcript
from pizzabot_builtin_plugins.sqlite_storage.connected import Connected
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import NewEvent, StoredEvent, TranscriptIndex, TurnRow


class SqliteTranscripts(Connected):
    async def append_facts(self, thread_id: str, new: Sequence[NewEvent], /, *, caller: Caller) -> int:
        work = partial(facts.append_facts, thread_id=thread_id, events=tuple(new), caller=caller)
        return await self._write(work, durable=True)

    async def latest_fact(self, thread_id: str, names: Collection[str], /, *, caller: Caller) -> StoredEvent | None:
        wanted = tuple(dict.fromkeys(names))
        return await self._read(partial(facts.latest_fact, thread_id=thread_id, names=wanted, caller=caller))

    async def transcript_index(self, thread_id: str, /, *, caller: Caller) -> TranscriptIndex:
        return await self._read(partial(transcript.transcript_index, thread_id=thread_id, caller=caller))

    async def transcript_turns(
        self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller
    ) -> Sequence[TurnRow]:
        wanted = tuple(dict.fromkeys(turn_ids))
        return await self._read(
            partial(transcript.transcript_turns, thread_id=thread_id, turn_ids=wanted, caller=caller)
        )

    async def put_transcript(
        self,
        thread_id: str,
        turns: Sequence[TurnRow],
        /,
        *,
        after: int,
        cursor: int,
        summary: bytes,
        caller: Caller,
    ) -> bool:
        work = partial(
            transcript.put_transcript,
            thread_id=thread_id,
            turns=tuple(turns),
            after=after,
            cursor=cursor,
            summary=summary,
            caller=caller,
        )
        return await self._write(work)

    async def drop_transcript(self, thread_id: str, /, *, caller: Caller) -> None:
        await self._write(partial(transcript.drop_transcript, thread_id=thread_id, caller=caller))
