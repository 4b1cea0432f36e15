"""Memory: documents of the person's, the same files as the agent's, and nothing at all while it is off."""

import asyncio
import os
import stat

import pytest

from pizzabot.host.memories import documents
from pizzabot.host.memories.documents import MAX_MEMORY, MAX_PREVIEW
from pizzabot.testing import host
from pizzabot_hookspecs import LOCAL, Caller, PizzabotError

OTHER = Caller(owner="../other")


def with_memory(tmp_path, test, *, on=True):
    async def main():
        async with host(settings={"storage": {"use": "memory"}}, data_root=tmp_path) as running:
            for caller in (LOCAL, OTHER):
                await running.preferences.patch({"enableMemories": on}, caller=caller)
            await test(running)

    asyncio.run(main())


async def refused(call, code):
    with pytest.raises(PizzabotError) as caught:
        await call
    assert caught.value.code == code, caught.value
    return caught.value


def test_a_document_is_written_read_listed_and_deleted(tmp_path):
    async def test(running):
        memories = running.memories
        made = await memories.put("pizza-dough", "# Dough\n\n72 hours", new=True, caller=LOCAL)
        assert made == await memories.get("pizza-dough", caller=LOCAL)
        assert (made["id"], made["content"]) == ("pizza-dough", "# Dough\n\n72 hours")
        await refused(memories.put("pizza-dough", "# Dough\n\n72 hours", new=True, caller=LOCAL), "already_exists")
        changed = await memories.put("pizza-dough", "größer", caller=LOCAL)
        assert (changed["content"], changed["updatedAt"] >= made["updatedAt"]) == ("größer", True)
        assert await memories.listing(caller=LOCAL) == {
            "memories": [{"id": "pizza-dough", "preview": "größer", "size": 8, "updatedAt": changed["updatedAt"]}]
        }
        await memories.delete("pizza-dough", caller=LOCAL)
        await memories.delete("pizza-dough", caller=LOCAL)
        await refused(memories.get("pizza-dough", caller=LOCAL), "no_such_memory")
        assert await memories.listing(caller=LOCAL) == {"memories": []}

    with_memory(tmp_path, test)


def test_the_agent_and_the_person_have_the_same_documents(tmp_path):
    async def test(running):
        area = running.memories.area(LOCAL)
        await area.write("/tastes.md", b"likes   olives\nand basil " + b"x" * 500)
        folder = tmp_path / "memories"
        (folder / "topics").mkdir()
        (folder / "topics" / "deep.md").write_text("not a document of the person's")
        (folder / "Not An Id.md").write_text("neither")
        (row,) = (await running.memories.listing(caller=LOCAL))["memories"]
        assert (row["id"], row["preview"]) == ("tastes", ("likes olives and basil " + "x" * 500)[:MAX_PREVIEW])
        await running.memories.put("person", "from the person", caller=LOCAL)
        assert (await area.read("/person.md", max_bytes=99)).content == b"from the person"
        assert [match.path for match in (await area.search("person", limit=9)).matches] == [
            "/person.md",
            "/topics/deep.md",
        ]
        assert [entry.path for entry in (await area.find("*.md", limit=9)).entries] == [
            "/Not An Id.md", "/person.md", "/tastes.md"
        ]  # fmt: skip

    with_memory(tmp_path, test)


def test_documents_are_only_their_owner_s(tmp_path):
    async def test(running):
        await running.memories.put("a", "local", caller=LOCAL)
        await running.memories.put("a", "other", caller=OTHER)
        assert (await running.memories.get("a", caller=LOCAL))["content"] == "local"
        assert (await running.memories.area(OTHER).read("/a.md", max_bytes=99)).content == b"other"
        assert (tmp_path / "memories" / "a.md").read_text() == "local"
        assert len(list((tmp_path / "memories-of").iterdir())) == 1

    with_memory(tmp_path, test)


def test_nobody_else_on_the_machine_can_read_a_document(tmp_path):
    async def test(running):
        await running.memories.put("a", "x", caller=LOCAL)
        await running.memories.area(LOCAL).write("/c.md", b"x")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "memories").rglob("*")}
        assert modes == {"a.md": 0o600, "c.md": 0o600}
        assert stat.S_IMODE((tmp_path / "memories").stat().st_mode) == 0o700

    with_memory(tmp_path, test)


def test_while_memory_is_off_nothing_is_listed_read_or_written(tmp_path):
    (tmp_path / "memories").mkdir(parents=True)
    (tmp_path / "memories" / "a.md").write_text("needle")

    async def test(running):
        memories, area = running.memories, running.memories.area(LOCAL)
        assert await memories.listing(caller=LOCAL) == {"memories": []}
        for call in (
            memories.get("a", caller=LOCAL),
            memories.put("a", "b", caller=LOCAL),
            memories.put("a", "b", new=True, caller=LOCAL),
            memories.delete("a", caller=LOCAL),
            area.list("/"),
            area.read("/a.md", max_bytes=99),
            area.write("/a.md", b"b"),
            area.write("/b.md", b"b"),
            area.find("**", limit=9),
            area.search("needle", limit=9),
        ):
            assert "disabled" in (await refused(call, "memories_disabled")).detail
        assert [path.name for path in (tmp_path / "memories").iterdir()] == ["a.md"]
        assert (tmp_path / "memories" / "a.md").read_text() == "needle"

    with_memory(tmp_path, test, on=False)


def test_the_switch_counts_in_areas_that_were_made_before(tmp_path):
    async def test(running):
        area = running.memories.area(LOCAL)
        for on in (True, False, True):
            await running.preferences.patch({"enableMemories": on}, caller=LOCAL)
            if on:
                await area.write("/a.md", b"x")
            else:
                await refused(area.write("/a.md", b"y"), "memories_disabled")
        assert (await area.read("/a.md", max_bytes=9)).content == b"x"

    with_memory(tmp_path, test, on=False)


def test_what_is_no_document_is_refused(tmp_path, monkeypatch):
    async def test(running):
        memories = running.memories
        for wrong in ("", "..", "a/b", "../a", ".hidden", "a.md", "a b", "é", "x" * 129, "-a", "a\n"):
            await refused(memories.get(wrong, caller=LOCAL), "invalid_id")
            await refused(memories.put(wrong, "x", caller=LOCAL), "invalid_id")
            await refused(memories.delete(wrong, caller=LOCAL), "invalid_id")
        await refused(memories.put("a", "x" * (MAX_MEMORY + 1), caller=LOCAL), "memory_too_large")
        await refused(memories.put("a", "\ud800", caller=LOCAL), "invalid_content")
        assert (await memories.put("a", "é" * (MAX_MEMORY // 2), caller=LOCAL))["id"] == "a"
        (tmp_path / "memories" / "large.md").write_bytes(bytes(documents.MAX_READ + 1))
        await refused(memories.get("large", caller=LOCAL), "file_too_large")

    with_memory(tmp_path, test)


def test_the_agent_writes_nothing_there_that_the_person_could_not_find_read_and_delete(tmp_path):
    async def test(running):
        area = running.memories.area(LOCAL)
        for wrong in ("/deep/a.md", "/a.txt", "/a", "/.md", "/.a.md", "/é.md", "/a b.md", "/a.md.md"):
            await refused(area.write(wrong, b"x"), "invalid_path")
        await refused(area.write("/a.md", bytes(documents.MAX_READ + 1)), "memory_too_large")
        assert not list((tmp_path / "memories").iterdir())
        await area.write("/a.md", b"x" * documents.MAX_READ)
        assert len((await running.memories.get("a", caller=LOCAL))["content"]) == documents.MAX_READ

    with_memory(tmp_path, test)


def test_a_link_among_the_documents_leads_nowhere(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "a.md").symlink_to(tmp_path / "secret.txt")

    async def test(running):
        await refused(running.memories.get("a", caller=LOCAL), "not_allowed")
        await refused(running.memories.put("a", "x", caller=LOCAL), "not_allowed")
        await refused(running.memories.delete("a", caller=LOCAL), "not_allowed")
        assert await running.memories.listing(caller=LOCAL) == {"memories": []}

    with_memory(tmp_path, test)
    assert (tmp_path / "secret.txt").read_text() == "secret"


def test_a_listing_has_the_newest_documents_first_and_no_more_than_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_MEMORIES", 2)
    (tmp_path / "memories").mkdir()
    for age, name in enumerate("bca"):
        path = tmp_path / "memories" / f"{name}.md"
        path.touch()
        os.utime(path, (1000 - age, 1000 - age))

    async def test(running):
        rows = (await running.memories.listing(caller=LOCAL))["memories"]
        assert [row["id"] for row in rows] == ["b", "c"]
        assert rows[0]["updatedAt"] == "1970-01-01T00:16:40+00:00"

    with_memory(tmp_path, test)
