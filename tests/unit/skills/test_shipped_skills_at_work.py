"""The reader, the writer of minutes and the guide, on a real host: what their SKILL.md tells the model is done."""

from __future__ import annotations

import json
import re
from pathlib import Path

from shipped_rig import REPOSITORY, calls, code_of, desk, evals, run


def test_the_reader_finds_files_by_several_words_and_says_when_a_search_stopped_early(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "flat: lease.txt").write_text("The deposit is due.\nA Deposit of 300.\n")
    (documents / "other.txt").write_text("Nothing here.\n")
    (documents / "many.txt").write_text("security payment\n" * 1_500)

    async def scenario() -> None:
        async with desk(documents) as at:
            found = json.loads(await at.delegates("document-reader", *map(evals, code_of("document-reader"))))
            assert found["hits"]["/local/documents/flat: lease.txt"] == {"deposit": 1, "Deposit": 1}
            assert found["hits"]["/local/documents/many.txt"] == {"security payment": 1_000}
            assert len(found["hits"]) == 2
            [note] = found["notes"]
            assert note.startswith("security payment: Note: the search stopped early")
            read = await at.delegates(
                "document-reader", calls("read_file", file_path="/local/documents/many.txt", offset=1_400)
            )
            assert read.startswith("@@ lines 1401-1500 of 1500 @@"), read[:80]

    run(scenario())


def test_the_writer_of_minutes_reads_to_the_end_and_writes_where_nothing_is(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "call.txt").write_text("Ada: I send the offer by Friday.\n" * 150)

    async def scenario() -> None:
        async with desk(notes, read_only=False) as at:
            page = await at.delegates("meeting-notes", calls("read_file", file_path="/local/notes/call.txt"))
            assert page.startswith("@@ lines 1-100 of 150 | next offset 100 @@"), page[:80]
            told = await at.delegates(
                "meeting-notes",
                calls("read_file", file_path="/local/notes/minutes.md"),
                calls("write_file", file_path="/local/notes/minutes.md", content="# Minutes\n"),
            )
            assert "/local/notes/minutes.md" in told

    run(scenario())
    assert (notes / "minutes.md").read_text() == "# Minutes\n"


def test_the_guide_reads_its_pages_whole_and_finds_a_code_in_them() -> None:
    async def scenario() -> None:
        async with desk() as at:
            pages = "/skills/pizzabot-guide/references"
            listed = await at.delegates("pizzabot-guide", calls("ls", path=pages))
            for page in re.findall(r"[\w-]+\.md", listed):
                text = await at.delegates("pizzabot-guide", calls("read_file", file_path=f"{pages}/{page}"))
                assert re.match(r"@@ lines 1-(\d+) of \1 @@\n# ", text), text[:80]
            found = await at.delegates(
                "pizzabot-guide", calls("grep", pattern="port_in_use", path=pages, output_mode="content")
            )
            assert f"{pages}/troubleshooting.md" in found
            assert "--port 8081" in found

    run(scenario())


def test_the_command_of_the_guide_for_authors_reaches_the_skill() -> None:
    readme = (REPOSITORY / "skills" / "README.md").read_text("utf-8")
    [said] = re.findall(r"^pizzabot chat '(.*)'$", readme, re.MULTILINE)
    arguments = json.loads(said.removeprefix("[[tool task ").removesuffix("]]"))

    async def scenario() -> None:
        async with desk() as at:
            told = await at.delegates(arguments["subagent_type"], arguments["description"])
            assert "/skills/data-analyst/table.js" in told

    run(scenario())
