"""The folder organiser, on a real host: it asks, then writes what was answered, and its script really moves files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from shipped_rig import calls, code_of, desk, evals, run

ORGANISER = code_of("folder-organiser")[0].splitlines()[0]
ODD = "it's é 100%.txt"
QUESTION = {"options": ["Write the script", "Copy the text files", "Change nothing"]}


def downloads(tmp_path: Path) -> Path:
    made = tmp_path / "downloads"
    for name in ("invoice march.txt", "IMG_0001.jpg", ODD, "sub/kept.txt", ".git/config", "photos/old.jpg"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(f"text of {name}\n", "utf-8")
    return made


def tree(made: Path) -> dict[str, str]:
    return {str(path.relative_to(made)): path.read_text("utf-8") for path in made.rglob("*") if path.is_file()}


def planning() -> tuple[str, str]:
    """The skill's own snippets for looking and planning, with one more move."""
    look, plan, _, _ = code_of("folder-organiser")
    return look, plan.replace("\n])", f'\n  ["{ODD}", "letters/{ODD}"],\n])')


@pytest.mark.parametrize("option", QUESTION["options"])
def test_the_organiser_asks_with_its_plan_and_does_then_what_was_answered_and_nothing_before(
    tmp_path: Path, option: str
) -> None:
    made = downloads(tmp_path)
    before = tree(made)
    asked = (
        "Organise /local/downloads: 3 files?\n"
        "- invoices ← invoice march.txt as 2026-03 invoice.txt\n"
        "- photos ← IMG_0001.jpg\n"
        f"- letters ← {ODD}\n"
        "I cannot move files myself. I can write a script for you to run, or copy text files."
    )
    _, _, script, copy = code_of("folder-organiser")
    then = {
        "Write the script": [evals(f"{ORGANISER}\n{script}")],
        "Copy the text files": [evals(f"{ORGANISER}\n{copy}")],
        "Change nothing": [],
    }[option]

    async def scenario() -> None:
        async with desk(made, read_only=False) as at:
            planned = json.loads(await at.delegates("folder-organiser", *map(evals, planning())))
            assert planned == {"moves": 3, "refused": [], "stay": 2, "notListed": [], "question": asked}
            question = calls("ask_user", question=asked, **QUESTION)
            assert await at.delegates("folder-organiser", *map(evals, planning()), question, *then) == ""
            waiting = await at.question()
            assert (waiting.kind, waiting.payload["question"]) == ("input", asked)
            assert [each["label"] for each in waiting.payload["options"]] == QUESTION["options"]
            assert tree(made) == before
            told.append(await at.answers(waiting, option))

    told: list[str] = []
    run(scenario())
    after = tree(made)
    assert {name: after[name] for name in before} == before
    added = after.keys() - before.keys()
    if option == "Write the script":
        assert json.loads(told[0]) == {"script": "/local/downloads/pizzabot-move.sh", "moves": 3}
        assert added == {"pizzabot-move.sh"}
    elif option == "Copy the text files":
        assert json.loads(told[0])["notCopied"] == ["IMG_0001.jpg: not text"]
        assert added == {"invoices/2026-03 invoice.txt", f"letters/{ODD}"}
        assert after[f"letters/{ODD}"] == before[ODD]
    else:
        assert added == set()


def test_the_script_of_the_organiser_moves_what_was_planned_and_replaces_nothing(tmp_path: Path) -> None:
    made = downloads(tmp_path)
    before = tree(made)

    async def scenario() -> None:
        async with desk(made, read_only=False) as at:
            for _ in range(2):
                script = code_of("folder-organiser")[2]
                await at.delegates("folder-organiser", *map(evals, (*planning(), script)))

    run(scenario())
    first, second = made / "pizzabot-move.sh", made / "pizzabot-move-2.sh"
    assert first.read_bytes() == second.read_bytes()
    (made / "photos" / "IMG_0001.jpg").write_text("came meanwhile")
    done = subprocess.run(["sh", first.name], cwd=made, capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == "not moved, ./photos/IMG_0001.jpg is there: ./IMG_0001.jpg\n"
    after = tree(made)
    assert after[f"letters/{ODD}"] == before[ODD]
    assert after["invoices/2026-03 invoice.txt"] == before["invoice march.txt"]
    assert (after["photos/IMG_0001.jpg"], after["IMG_0001.jpg"]) == ("came meanwhile", before["IMG_0001.jpg"])
    assert not (made / ODD).exists()
    assert not (made / "invoice march.txt").exists()
    again = subprocess.run(["sh", second, made], cwd="/", capture_output=True, text=True, check=True, timeout=20)
    assert again.stdout.count("not there: ") == 2
    assert tree(made) == after


def test_the_organiser_refuses_moves_that_would_replace_or_leave_and_keeps_the_others(tmp_path: Path) -> None:
    made = downloads(tmp_path)
    moves = [
        ["missing.txt", "a/missing.txt"],
        ["invoice march.txt", "photos/OLD.jpg"],
        ["invoice march.txt", "../out.txt"],
        ["invoice march.txt", "/abs.txt"],
        ["invoice march.txt", "IMG_0001.jpg/x.txt"],
        ["invoice march.txt", "papers/march.txt"],
        ["invoice march.txt", "papers/again.txt"],
        [ODD, "papers/March.txt"],
    ]

    async def scenario() -> None:
        async with desk(made) as at:
            code = f"{ORGANISER}\nawait organiser.plan('/local/downloads/', {json.dumps(moves)})"
            found = json.loads(await at.delegates("folder-organiser", evals(code)))
            assert found["moves"] == 1
            assert [each.rpartition(": ")[2] for each in found["refused"]] == [
                "there is no such file",
                "something is there, or comes there, already",
                "no name within the folder",
                "no name within the folder",
                "IMG_0001.jpg is a file",
                "it is moved twice",
                "something is there, or comes there, already",
            ]

    run(scenario())


def test_what_the_organiser_tells_of_a_large_folder_fits_into_a_result_and_the_whole_list_is_a_file(
    tmp_path: Path,
) -> None:
    made = tmp_path / "downloads"
    made.mkdir()
    names = [f"{number:03} {'long ' * 20}name.txt" for number in range(300)]
    for name in names:
        (made / name).touch()
    moves = [[name, f"{number}/{name}"] for number, name in enumerate(names)]
    wrong = [[f"not {name}", name] for name in names]

    async def scenario() -> None:
        async with desk(made) as at:
            look = code_of("folder-organiser")[0]
            found = json.loads(await at.delegates("folder-organiser", evals(look)))
            assert (found["count"], found["endings"]) == (300, {"txt": 300})
            assert found["files"] == names[: len(found["files"])]
            assert len(found["files"]) > 20
            kept = await at.delegates(
                "folder-organiser", evals('await tools.readFile({filePath: "/organiser/files.json"})')
            )
            assert names[50] in kept
            plan = f"{ORGANISER}\nawait organiser.plan('/local/downloads', {json.dumps([*moves, *wrong])})"
            found = json.loads(await at.delegates("folder-organiser", evals(plan)))
            assert (found["moves"], found["refused"][-1]) == (300, "and 285 more")
            assert "- and 270 more folders" in found["question"]

    run(scenario())


def test_a_read_only_folder_gets_its_script_in_the_conversation_and_no_copies(tmp_path: Path) -> None:
    made = downloads(tmp_path)
    before = tree(made)
    _, _, script, copy = code_of("folder-organiser")

    async def scenario() -> None:
        async with desk(made) as at:
            found = json.loads(await at.delegates("folder-organiser", *map(evals, (*planning(), script))))
            assert found["script"] == "/organiser/pizzabot-move.sh"
            assert "may only be read" in found["notBesideTheFiles"]
            found = json.loads(await at.delegates("folder-organiser", *map(evals, (*planning(), copy))))
            assert found["copied"] == []
            assert len(found["notCopied"]) == 3

    run(scenario())
    assert tree(made) == before


def test_copies_are_whole_go_on_in_portions_and_never_replace(tmp_path: Path) -> None:
    made = tmp_path / "downloads"
    made.mkdir()
    texts = {f"{number:02}.txt": f"line {number}\n\n" * (1 + number * 300) for number in range(29)}
    texts["a page.txt"] = "one line\n" * 1_000
    for name, text in texts.items():
        (made / name).write_text(text)
    (made / "big.txt").write_text("x" * 79 + "\n" + "y" * 1_000_000)
    moves = [[name, f"new/{name}"] for name in (*texts, "big.txt")]
    go = f"{ORGANISER}\nawait organiser.copy(%d)"

    async def scenario() -> None:
        async with desk(made, read_only=False) as at:
            plan = f"{ORGANISER}\nawait organiser.plan('/local/downloads', {json.dumps(moves)})"
            first = json.loads(await at.delegates("folder-organiser", evals(plan), evals(go % 0)))
            assert (len(first["copied"]), first["notCopied"], first["left"], first["next"]) == (20, [], 11, 20)
            (made / "new" / "25.txt").write_text("came meanwhile")
            rest = json.loads(await at.delegates("folder-organiser", evals(go % 20)))
            assert (len(rest["copied"]), rest["left"]) == (9, 0)
            assert [each.partition(":")[0] for each in rest["notCopied"]] == ["25.txt", "big.txt"]

    run(scenario())
    for name, text in texts.items():
        copied = (made / "new" / name).read_text()
        assert copied == ("came meanwhile" if name == "25.txt" else text), name
