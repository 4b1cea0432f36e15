"""Granted folders with the real command: what the configuration grants, and what it cannot."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from commands import pizzabot, refused_start
from servers import Server, running_server
from talking import HttpConversation, ask, texts

CONFIGURATION = 3


def test_grants_of_the_file_and_of_a_person_are_there_after_a_restart(tmp_path: Path) -> None:
    for name in ("Documents", "Pictures"):
        (tmp_path / name).mkdir()
    config = '[folders]\ngrants = [{ path = "~/Documents", read_only = false }]\nbrowse_roots = ["~"]\n'
    environ = {"PIZZABOT_ALLOW_LOCAL_FOLDER_CONFIGURATION": "1"}
    with running_server(tmp_path, config=config, environ=environ) as server:
        put = httpx.post(f"{server.http}/local-folders", json={"path": str(tmp_path / "Pictures")}, trust_env=False)
        assert put.status_code == 201, put.text
        before = httpx.get(f"{server.http}/local-folders", trust_env=False).json()
        assert [(row["id"], row["readOnly"], row["managedByFile"]) for row in before["folders"]] == [
            ("documents", False, True),
            ("pictures", True, False),
        ]
        server.restart()
        assert httpx.get(f"{server.http}/local-folders", trust_env=False).json() == before
        named = httpx.get(f"{server.http}/local-folders/browse", trust_env=False).json()["directories"]
        assert [row["path"] for row in named] == [str(tmp_path.resolve())]


@pytest.mark.parametrize(
    ("config", "environ", "says"),
    [
        ('[folders]\nbrowse_roots = ["relative"]\n', {}, "is relative"),
        ("", {"PIZZABOT_LOCAL_FOLDER_BROWSE_ROOTS": "/no/such/folder"}, "PIZZABOT_LOCAL_FOLDER_BROWSE_ROOTS"),
        ('[folders]\ngrants = [{ path = "~/none" }]\n', {}, "pizzabot.toml:2"),
        ('[folders]\ngrants = [{ path = "~" }]\n', {}, "data root"),
        ('[folders]\ngrants = ["~"]\n', {}, "folders.grants"),
        ('[folders]\nbrowse_root = ["~"]\n', {}, "did you mean folders.browse_roots?"),
    ],
)
def test_a_folder_that_cannot_be_granted_or_browsed_refuses_the_start(
    tmp_path: Path, config: str, environ: dict[str, str], says: str
) -> None:
    code, line = refused_start(tmp_path, config=config, environ=environ)
    assert code == CONFIGURATION
    assert says in line


def test_the_configuration_is_shown_and_checked_with_its_folders(tmp_path: Path) -> None:
    (tmp_path / "Documents").mkdir()
    fine = '[folders]\ngrants = [{ path = "~/Documents" }]\n'
    assert '"path": "~/Documents", "read_only": true' in pizzabot(tmp_path, "config", "show", config=fine).stdout
    assert pizzabot(tmp_path, "config", "check", config=fine).code == 0
    (tmp_path / "Documents").rmdir()
    checked = pizzabot(tmp_path, "config", "check", config=fine)
    assert checked.code == CONFIGURATION
    assert "pizzabot.toml:2" in checked.stdout + checked.stderr


def told_by_tools(server: Server, thread_id: str, *calls: tuple[str, dict[str, str]]) -> list[str]:
    """What the tools answer when an agent calls them one after another, on one real turn."""
    text = "[[then]]".join(f"[[tool {name} {json.dumps(arguments)}]]" for name, arguments in calls) + "[[then]]done"

    async def scene() -> list[str]:
        async with asyncio.timeout(60), HttpConversation(server.http) as talk:
            await ask(talk, thread_id, text)
            return [said for kind, said in texts(await talk.state(thread_id)) if kind == "tool"]

    return asyncio.run(scene())


def test_an_agent_uses_what_is_granted_and_nothing_more(tmp_path: Path) -> None:
    documents = tmp_path / "Documents"
    documents.mkdir()
    (documents / "größe.txt").write_text("the dough rests 72 hours")
    (tmp_path / "secret.txt").write_text("the secret sauce")
    (documents / "link.txt").symlink_to(tmp_path / "secret.txt")
    environ = {"PIZZABOT_ALLOW_LOCAL_FOLDER_CONFIGURATION": "1"}
    with running_server(tmp_path, environ=environ) as server:
        httpx.post(f"{server.http}/local-folders", json={"path": str(documents)}, trust_env=False)
        read, searched, written, linked, remembered = told_by_tools(
            server,
            "first",
            ("read_file", {"file_path": "/local/documents/größe.txt"}),
            ("grep", {"pattern": "72 hours", "path": "/local"}),
            ("write_file", {"file_path": "/local/documents/new.txt", "content": "x"}),
            ("read_file", {"file_path": "/local/documents/link.txt"}),
            ("write_file", {"file_path": "/memories/dough.md", "content": "72 hours"}),
        )
        assert "the dough rests 72 hours" in read
        assert "/local/documents/gr" in searched
        assert "may only be read" in written
        assert "not allowed" in linked
        assert "disabled" in remembered
        assert not (documents / "new.txt").exists()
        httpx.put(f"{server.http}/settings", json={"enableMemories": True}, trust_env=False)
        httpx.delete(f"{server.http}/local-folders/documents", trust_env=False)
        read, remembered = told_by_tools(
            server,
            "second",
            ("read_file", {"file_path": "/local/documents/größe.txt"}),
            ("write_file", {"file_path": "/memories/dough.md", "content": "72 hours"}),
        )
        assert "no folder that the person has granted" in read
        memory = httpx.get(f"{server.http}/memories/dough", trust_env=False).json()
        assert (memory["content"], "dough" in remembered) == ("72 hours", True)
        told = json.dumps([read, searched, written, linked])
        assert "secret sauce" not in told
        assert str(tmp_path) not in told
