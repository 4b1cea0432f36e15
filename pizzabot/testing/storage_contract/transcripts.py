"""The storage contract, part: the transcript as rows, which are kept, replaced and dropped, and moved by one only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pizzabot.testing.run_store_contract.base import ANNA, BORIS, log, log_texts, started, words
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, SYSTEM, Caller
from pizzabot_hookspecs.storage_backends import Storage, TranscriptIndex, TurnPlace, TurnRow

EMPTY = TranscriptIndex()
MANY = 2_500
"""More ids than a database may take in one statement."""


def turn(turn_id: str, seq: int, *, rev: int = 0, parent: str | None = None, body: bytes | None = None) -> TurnRow:
    body = f'{{"id":"{turn_id}","rev":{rev}}}'.encode() if body is None else body
    return TurnRow(turn_id=turn_id, seq=seq, rev=rev or seq, parent_id=parent, settled=seq % 2 == 1, body=body)


def place(row: TurnRow) -> TurnPlace:
    return TurnPlace(turn_id=row.turn_id, seq=row.seq, rev=row.rev, parent_id=row.parent_id, settled=row.settled)


async def put(
    storage: Storage,
    *rows: TurnRow,
    after: int,
    cursor: int,
    summary: bytes = b"{}",
    thread_id: str = "t",
    caller: Caller = LOCAL,
) -> bool:
    return await storage.put_transcript(thread_id, rows, after=after, cursor=cursor, summary=summary, caller=caller)


async def kept(storage: Storage, *, thread_id: str = "t", caller: Caller = LOCAL) -> tuple[int, bytes, list[TurnRow]]:
    """Cursor, summary and all rows; the index has to name them as they are."""
    index = await storage.transcript_index(thread_id, caller=caller)
    ids = [turn.turn_id for turn in index.turns]
    rows = list(await storage.transcript_turns(thread_id, ids, caller=caller))
    assert list(index.turns) == [place(row) for row in rows]
    return index.cursor, index.summary, rows


async def is_empty(storage: Storage, *, thread_id: str = "t", caller: Caller = LOCAL) -> bool:
    index = await storage.transcript_index(thread_id, caller=caller)
    return (index.cursor, index.summary, list(index.turns)) == (0, b"", [])


class TranscriptContract(WholeSuite):
    def test_a_thread_without_a_transcript_and_no_thread_have_an_empty_one(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            for thread_id in ("t", "unknown"):
                assert await is_empty(storage, thread_id=thread_id)
                assert list(await storage.transcript_turns(thread_id, ["a"], caller=LOCAL)) == []
                await storage.drop_transcript(thread_id, caller=LOCAL)
            assert await storage.thread("unknown", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_rows_are_read_back_byte_for_byte_ascending_by_their_place(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            rows = [
                turn("z", 1, body=b""),
                turn("a", 2, parent="z", body='{"text":"Zlín ☕ \\ud83d \\u0000"}'.encode()),
                turn("ž 🫖'\"%", 10, parent="a", rev=2**40, body=b"\x00\xff no text at all"),
                turn("b", 300, parent="a", body=b"x" * 200_000),
            ]
            assert await put(storage, rows[2], rows[0], rows[3], rows[1], after=0, cursor=310, summary=b"\x00\xfe")
            assert await kept(storage) == (310, b"\x00\xfe", rows)
            assert [row.settled for row in rows] == [True, False, False, False]

        self.play(tmp_path, scenario)

    def test_turns_are_read_by_their_ids_and_unknown_ones_are_left_out(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            rows = [turn(f"turn-{seq * 7919 % 5_003}", seq) for seq in range(1, MANY + 1)]
            assert await put(storage, *rows, after=0, cursor=MANY)
            for wanted in (rows[5:6], rows[3:1_200][::-1], rows[::-1], []):
                ids = [row.turn_id for row in wanted]
                found = await storage.transcript_turns("t", ["no", *ids, "no such", *ids[:3]], caller=LOCAL)
                assert list(found) == sorted(wanted, key=lambda row: row.seq)
            assert (await kept(storage))[2] == rows

        self.play(tmp_path, scenario)

    def test_putting_a_row_again_replaces_it_and_leaves_the_others(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            first, second = turn("a", 1), turn("b", 5, parent="a")
            assert await put(storage, first, second, after=0, cursor=8, summary=b"old")
            replaced = TurnRow(turn_id="a", seq=9, rev=12, parent_id="b", settled=False, body=b"new")
            third = turn("c", 11, parent="a")
            assert await put(storage, third, replaced, after=8, cursor=12, summary=b"new")
            assert await kept(storage) == (12, b"new", [second, replaced, third])
            assert await put(storage, after=12, cursor=20, summary=b"")
            assert await kept(storage) == (20, b"", [second, replaced, third])

        self.play(tmp_path, scenario)

    def test_a_put_after_another_cursor_writes_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            assert not await put(storage, turn("early", 1), after=3, cursor=5)
            assert await is_empty(storage)
            row = turn("a", 1)
            assert await put(storage, row, after=0, cursor=8, summary=b"first")
            for after in (0, 7, 9, -8):
                late = (turn("a", 1, rev=4, body=b"late"), turn("b", 2))
                assert not await put(storage, *late, after=after, cursor=30, summary=b"late")
                assert await kept(storage) == (8, b"first", [row])
            assert not await put(storage, turn("a", 1), after=0, cursor=1, thread_id="unknown")
            assert await storage.thread("unknown", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_of_those_who_put_at_once_one_succeeds_wholly(self, tmp_path: Path) -> None:
        async def scenario(first: Storage, second: Storage) -> None:
            await first.create_thread("t", caller=LOCAL)
            cursor = 0
            for number in range(1, 6):
                rows = [
                    [turn(f"{part}", part, rev=number * 100 + writer) for part in range(1, 5)] for writer in range(8)
                ]
                answers = await asyncio.gather(
                    *(
                        put(storage, *rows[writer], after=cursor, cursor=number * 100 + writer, summary=b"%d" % writer)
                        for writer, storage in enumerate([first, second] * 4)
                    )
                )
                assert sum(answers) == 1
                winner = answers.index(True)
                cursor = number * 100 + winner
                for storage in (first, second):
                    assert await kept(storage) == (cursor, b"%d" % winner, rows[winner])

        self.play_two(tmp_path, scenario)

    def test_an_index_is_of_one_moment_while_somebody_puts(self, tmp_path: Path) -> None:
        async def scenario(first: Storage, second: Storage) -> None:
            await first.create_thread("t", caller=LOCAL)
            seen: list[TranscriptIndex] = []

            async def writes() -> None:
                for number in range(40):
                    rows = [turn(f"{number}", number + 1), turn("changes", 1_000, rev=number + 1)]
                    assert await put(first, *rows, after=number, cursor=number + 1, summary=b"%d" % (number + 1))

            async def reads() -> None:
                while not seen or seen[-1].cursor < 40:
                    seen.append(await second.transcript_index("t", caller=LOCAL))
                    await asyncio.sleep(0)

            await asyncio.gather(writes(), reads(), reads())
            for index in seen:
                rev = [place.rev for place in index.turns if place.turn_id == "changes"]
                assert index.summary == (b"%d" % index.cursor if index.cursor else b"")
                assert rev == [index.cursor][: len(rev)]
                assert len(index.turns) == (index.cursor + 1 if index.cursor else 0)

        self.play_two(tmp_path, scenario)

    def test_a_put_whose_awaiter_was_cancelled_is_whole_or_absent(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            rows = [turn(f"{seq}", seq) for seq in range(1, 41)]
            for number in range(10):
                await storage.create_thread(f"t{number}", caller=LOCAL)
            tasks = [
                asyncio.create_task(put(storage, *rows, after=0, cursor=40, thread_id=f"t{number}"))
                for number in range(10)
            ]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            for number, answer in enumerate(answers):
                cursor, _, found = await kept(storage, thread_id=f"t{number}")
                assert (cursor, found) in ((40, rows), (0, []))
                assert cursor == 40 or answer is not True

        self.play(tmp_path, scenario)

    def test_a_dropped_transcript_is_empty_and_is_made_again_from_the_start(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            await storage.append_events("r", run.epoch, words("a", "b"), caller=LOCAL)
            before = await log(storage)
            await storage.create_thread("u", caller=LOCAL)
            other = turn("a", 7)
            assert await put(storage, other, after=0, cursor=9, thread_id="u")
            assert await put(storage, turn("a", 1), turn("b", 2), after=0, cursor=2, summary=b"x")
            await storage.drop_transcript("t", caller=LOCAL)
            assert await is_empty(storage)
            assert list(await storage.transcript_turns("t", ["a", "b"], caller=LOCAL)) == []
            assert await log(storage) == before
            assert await kept(storage, thread_id="u") == (9, b"{}", [other])
            assert not await put(storage, turn("b", 2), after=2, cursor=3)
            again = turn("a", 1, rev=3)
            assert await put(storage, again, after=0, cursor=3)
            assert await kept(storage) == (3, b"{}", [again])

        self.play(tmp_path, scenario)

    def test_transcripts_of_another_owner_are_neither_seen_nor_changed(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=ANNA)
            row = turn("a", 1)
            assert not await put(storage, row, after=0, cursor=1, caller=BORIS)
            assert await is_empty(storage, caller=ANNA)
            assert await put(storage, row, after=0, cursor=4, caller=ANNA)
            assert await is_empty(storage, caller=BORIS)
            assert list(await storage.transcript_turns("t", ["a"], caller=BORIS)) == []
            assert not await put(storage, turn("a", 1, body=b"forged"), after=4, cursor=9, caller=BORIS)
            await storage.drop_transcript("t", caller=BORIS)
            for caller in (ANNA, SYSTEM):
                assert await kept(storage, caller=caller) == (4, b"{}", [row])
            assert await put(storage, turn("b", 5), after=4, cursor=6, caller=SYSTEM)
            assert (await kept(storage, caller=ANNA))[0] == 6
            await storage.drop_transcript("t", caller=SYSTEM)
            assert await is_empty(storage, caller=ANNA)

        self.play(tmp_path, scenario)

    def test_a_transcript_goes_with_its_thread_and_no_other(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            row = turn("a", 1)
            for thread_id in ("t", "u"):
                await storage.create_thread(thread_id, caller=LOCAL)
                assert await put(storage, row, after=0, cursor=4, thread_id=thread_id)
            await storage.delete_thread("t", caller=LOCAL)
            assert await is_empty(storage)
            assert list(await storage.transcript_turns("t", ["a"], caller=LOCAL)) == []
            for after in (0, 4):
                assert not await put(storage, row, after=after, cursor=9), "the thread is gone"
            assert await kept(storage, thread_id="u") == (4, b"{}", [row])
            await storage.create_thread("t", caller=LOCAL)
            assert await is_empty(storage), "a new thread of the id begins anew"
            assert await put(storage, row, after=0, cursor=2)

        self.play(tmp_path, scenario)

    def test_opening_again_finds_the_transcript(self, tmp_path: Path) -> None:
        rows: Sequence[TurnRow] = [turn("a", 1), turn("b", 2, parent="a")]

        async def first(storage: Storage) -> None:
            await started(storage, "r")
            assert await put(storage, *rows, after=0, cursor=4, summary=b"sum")

        async def second(storage: Storage) -> None:
            assert await kept(storage) == ((4, b"sum", rows) if self.durable else (0, b"", []))
            assert await log_texts(storage) == []

        self.play(tmp_path, first, second)
