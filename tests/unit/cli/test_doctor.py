"""`pizzabot doctor` finds transcripts that are not what their log says, and makes them anew; never beside a server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pizzabot.cli.main import main
from pizzabot.host.transcripts.keeping import TranscriptKeeper
from pizzabot.testing.hosts import host
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.support.data_root import DataRootLock


def talked(root: Path, *, spoiled: bool = False) -> None:
    """A thread with rows, which say something else where `spoiled`."""

    async def scene() -> None:
        async with host(data_root=root) as parts:
            message = {"role": "user", "content": "hello", "id": "m1"}
            body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [message]}}}
            await parts.runs.command("t", body, caller=LOCAL)
            await parts.engine.when_idle()
            storage = parts.storage
            await TranscriptKeeper(storage, logger=parts.ground.logger("test")).keep("t", least=1)
            if spoiled:
                index = await storage.transcript_index("t", caller=LOCAL)
                (row,) = await storage.transcript_turns("t", ["m1"], caller=LOCAL)
                wrong = replace(row, body=row.body.replace(b"hello", b"other"))
                place = {"after": index.cursor, "cursor": index.cursor, "summary": index.summary}
                await storage.put_transcript("t", [wrong], **place, caller=LOCAL)

    root.mkdir(parents=True, exist_ok=True)
    asyncio.run(scene())


def doctor(root: Path, *words: str) -> int:
    return main(["doctor", "--data-root", str(root), *words])


def test_what_is_sound_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talked(tmp_path)
    assert doctor(tmp_path) == 0
    said = capsys.readouterr()
    assert "storage    sqlite can be opened" in said.out
    assert "1 thread checked, 0 with a fault" in said.out
    assert said.err == ""


def test_a_row_that_is_wrong_is_named_and_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talked(tmp_path, spoiled=True)
    assert doctor(tmp_path) == 1
    said = capsys.readouterr()
    assert "thread t: turn 'm1' is not as the log has it" in said.out
    assert said.err == "pizzabot: 1 of 1 thread with a fault; `pizzabot doctor --rebuild` makes rows anew\n"
    assert doctor(tmp_path, "--rebuild") == 0
    assert "events folded" in capsys.readouterr().out
    assert doctor(tmp_path) == 0


def test_a_thread_that_is_not_there_is_said_to_be_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talked(tmp_path)
    assert doctor(tmp_path, "--rebuild", "t", "elsewhere") == 1
    said = capsys.readouterr()
    assert "1 thread rebuilt" in said.out
    assert said.err == "pizzabot: no such thread: elsewhere\n"


def test_beside_a_server_it_refuses_and_names_the_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talked(tmp_path)
    with DataRootLock(tmp_path):
        assert doctor(tmp_path) == 4
    assert "is in use by process" in capsys.readouterr().err


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    talked(tmp_path)
    with sqlite3.connect(tmp_path / "app.sqlite") as database:
        database.execute("INSERT INTO migrations VALUES ('app', 99, '2026-12-01')")
    assert doctor(tmp_path, "--rebuild") == 5
    assert "99" in capsys.readouterr().err


def spoil(root: Path, statement: str) -> None:
    import sqlite3

    with sqlite3.connect(root / "app.sqlite") as database:
        database.execute(statement)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE run_events SET payload = x'7b7b' WHERE seq = 3", "the log cannot be read (JSONDecodeError"),
        ("DELETE FROM run_events WHERE seq BETWEEN 2 AND 5", "the log has a gap before event 6"),
        ("UPDATE threads SET next_seq = 5", "the thread's next one would be 5"),
    ],
)
def test_a_log_that_is_not_whole_is_named_and_nothing_is_made_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str, fault: str
) -> None:
    talked(tmp_path)
    spoil(tmp_path, statement)
    for words in ((), ("--rebuild",)):
        assert doctor(tmp_path, *words) == 1
        said = capsys.readouterr().out
        assert fault in said
        assert "1 with a fault" in said


def test_rows_that_cannot_be_read_are_named_and_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talked(tmp_path)
    spoil(tmp_path, "UPDATE transcript_turns SET body = x'00ff00'")
    assert doctor(tmp_path) == 1
    assert "thread t: the rows cannot be read" in capsys.readouterr().out
    assert doctor(tmp_path, "--rebuild") == 0
    assert doctor(tmp_path) == 0


def test_a_model_that_has_lost_its_memory_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talked(tmp_path)
    for left in tmp_path.glob("checkpoints.sqlite*"):
        left.unlink()
    assert doctor(tmp_path) == 1
    assert "thread t: the model's memory of it is gone" in capsys.readouterr().out


def test_a_data_root_that_is_not_there_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(tmp_path / "none") == 4
    assert "there is no data root" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
