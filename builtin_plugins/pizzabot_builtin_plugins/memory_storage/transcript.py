"""The transcript as rows: one per turn, which the host folds from the log, and the cursor up to which it did."""

from __future__ import annotations

from collections.abc import Sequence

from pizzabot_builtin_plugins.memory_storage.rows import TranscriptRow
from pizzabot_builtin_plugins.memory_storage.state import State
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import TranscriptIndex, TurnPlace, TurnRow


class TranscriptTables(State):
    def transcript_index(self, thread_id: str, *, caller: Caller) -> TranscriptIndex:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return TranscriptIndex()
        kept = row.transcript
        turns = [_place(turn) for turn in sorted(kept.turns.values(), key=_order)]
        return TranscriptIndex(cursor=kept.cursor, summary=kept.summary, turns=turns)

    def transcript_turns(self, thread_id: str, turn_ids: Sequence[str], *, caller: Caller) -> Sequence[TurnRow]:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return []
        kept = row.transcript.turns
        return sorted((kept[turn_id] for turn_id in dict.fromkeys(turn_ids) if turn_id in kept), key=_order)

    def put_transcript(
        self, thread_id: str, turns: Sequence[TurnRow], *, after: int, cursor: int, summary: bytes, caller: Caller
    ) -> bool:
        row = self._thread_row(thread_id, caller)
        if row is None or row.transcript.cursor != after:
            return False
        row.transcript.turns.update((turn.turn_id, turn) for turn in turns)
        row.transcript.cursor, row.transcript.summary = cursor, summary
        return True

    def drop_transcript(self, thread_id: str, *, caller: Caller) -> None:
        row = self._thread_row(thread_id, caller)
        if row is not None:
            row.transcript = TranscriptRow()


def _order(turn: TurnRow) -> tuple[int, str]:
    return turn.seq, turn.turn_id


def _place(turn: TurnRow) -> TurnPlace:
    return TurnPlace(turn_id=turn.turn_id, seq=turn.seq, rev=turn.rev, parent_id=turn.parent_id, settled=turn.settled)
