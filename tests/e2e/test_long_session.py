"""A long session with the real command: thirty turns over the stock SDK, three specialists, a crash in the middle.

At the end the state, the transcript, the files and the journal of the MCP server are compared with what was written
down by hand: nothing is lost, and nothing that has an effect happened twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import quote

import long_session as told
import pytest
from expected import ARTIFACTS, JOURNAL, MEMORY, OTHER_TRANSCRIPT, TRANSCRIPT
from household import MEMO, RECIPE, Household, household
from scripting import steps, use
from sessions import Session, sdk, spoken
from watching import check_log

SECONDS = 120.0


def play(scene: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(scene, SECONDS))


@pytest.mark.timeout(300)
def test_after_a_long_session_with_a_crash_everything_is_exactly_right(tmp_path: Path) -> None:
    scripts: dict[str, Any] = {}

    async def before(house: Household) -> str:
        async with sdk(house.server.http) as client:
            session, other = Session(client, "long", scripts), Session(client, "other")
            await told.files(session, client)
            await told.work(session, client)
            await told.questions(session)
            await told.revoked_meanwhile(session, client, house)
            await told.another_branch(session, client)
            await told.stopped_in_a_tool(session, house)
            return await told.until_the_crash(session, other, house)

    async def after(house: Household, run_id: str) -> None:
        async with sdk(house.server.http) as client:
            session, other = Session(client, "long", scripts), Session(client, "other")
            await told.after_the_crash(session, other, run_id)
            await check_memory(session)
            await check_artifacts(client)
            check_disk(house)
            assert house.journal == JOURNAL
            assert (await client.http.get("/inbox"))["interrupts"] == []
            for thread in ("long", "other"):
                check_log(house.server, thread)
            await check_fork(session, client)
            await check_transcripts(session, other)

    with household(tmp_path) as house:
        run_id = play(before(house))
        house.killed_and_restarted()
        play(after(house, run_id))


async def check_memory(session: Session) -> None:
    """`GET state`: every message of the branch, nothing of a file and no byte of an attachment in it."""
    state = await session.state()
    assert (state["next"], state["values"].get("files", {})) == ([], {})
    answers: list[list[str]] = []
    for kind, text in spoken(state):
        answers.append([]) if kind == "human" else answers[-1].append(text)
    assert [text for kind, text in spoken(state) if kind == "human"] == told.said_on_the_branch(session)
    assert answers == MEMORY
    assert "Ada,1" not in str(state["values"])


async def check_artifacts(client: Any) -> None:
    rows = (await client.http.get("/threads/long/artifacts"))["artifacts"]
    found = {row["path"]: (row["version"], await told.artifact(client, quote(row["path"][1:]))) for row in rows}
    assert found == ARTIFACTS
    versions = (await client.http.get("/threads/long/artifact-versions/draft.md"))["versions"]
    assert [(row["version"], row["turnId"]) for row in versions] == [(3, "m27"), (2, "m26"), (1, "m25")]


def check_disk(house: Household) -> None:
    """Granted folders and memories hold what was written there and nothing else."""

    def contents(folder: Path) -> dict[str, str]:
        return {path.name: path.read_text("utf-8") for path in folder.iterdir()}

    onions = "".join(f"onion {number}\n" for number in range(1, 251))
    assert contents(house.recipes) == {RECIPE: onions, MEMO: "塩を忘れない\n"}
    assert contents(house.drafts) == {"menü [1].md": "soup and 🍕\n"}
    assert contents(house.inbox) == {"a.txt": "a"}
    assert contents(house.server.data_root / "memories") == {"guests.md": "Ada eats no olives.\n"}


async def check_fork(session: Session, client: Any) -> None:
    """A fork of all that has the same memory and files, is a thread of its own, and changes nothing of this one."""
    await client.http.post("/threads/long/fork", json={"threadId": "fork"})
    fork = Session(client, "fork", dict(session.scripts))
    assert spoken(await fork.state()) == spoken(await session.state())
    rows = (await client.http.get("/threads/fork/artifacts"))["artifacts"]
    found = {row["path"]: await told.artifact(client, quote(row["path"][1:]), of="fork") for row in rows}
    assert found == {path: content for path, (_, content) in ARTIFACTS.items()}
    assert [items[0] for items in (await fork.transcript()).values()] == [items[0] for items in TRANSCRIPT.values()]
    await fork.turn(steps(use("write_file", file_path="/draft.md", content="forked\n"), "Forked."))
    assert await told.artifact(client, "draft.md", of="fork") == "forked\n"
    await check_artifacts(client)


async def check_transcripts(session: Session, other: Session) -> None:
    """`GET transcript`: every turn, what each specialist did under its own namespace, those of an eval as well."""
    found = await session.transcript()
    assert list(found) == list(TRANSCRIPT)
    wrong = {turn: (items, TRANSCRIPT[turn]) for turn, items in found.items() if items != TRANSCRIPT[turn]}
    assert wrong == {}
    assert await other.transcript() == OTHER_TRANSCRIPT
