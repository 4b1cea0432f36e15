"""The granted folders as the agent has them: looked up for every operation, each with its own access."""

import asyncio
import os
from pathlib import Path

import pytest

from pizzabot.testing import host
from pizzabot_hookspecs import LOCAL, PizzabotError
from pizzabot_hookspecs.files import GrantedFolder


def granted(tmp_path, test):
    """Run `test(area, folders, place)`: `/docs` may be read, `/notes` written."""
    place = Path(os.path.realpath(tmp_path)) / "place"
    for name in ("Docs", "Notes"):
        (place / name).mkdir(parents=True)
        (place / name / "a.txt").write_text(f"needle of {name}")
    (tmp_path / "data").mkdir()

    async def main():
        settings = {"storage": {"use": "memory"}, "folders": {"configure": True}}
        async with host(settings=settings, data_root=tmp_path / "data") as running:
            await running.folders.grant(str(place / "Docs"), caller=LOCAL)
            await running.folders.grant(str(place / "Notes"), read_only=False, caller=LOCAL)
            await test(running.folders.area(LOCAL), running.folders, place)

    asyncio.run(main())


async def refused(call, code, place=None):
    with pytest.raises(PizzabotError) as caught:
        await call
    assert caught.value.code == code, caught.value
    if place is not None:
        assert str(place) not in f"{caught.value.detail} {dict(caught.value.fields)}"
    return caught.value


async def every_operation_refused(area, folder, code, place):
    await refused(area.list(folder), code, place)
    await refused(area.read(f"{folder}/a.txt", max_bytes=99), code, place)
    await refused(area.write(f"{folder}/a.txt", b"x"), code, place)
    await refused(area.find("**", folder, limit=9), code, place)
    await refused(area.search("needle", folder, limit=9), code, place)


def test_the_root_lists_what_is_granted_and_searches_all_of_it(tmp_path):
    async def test(area, _, place):
        assert [(entry.path, entry.is_folder) for entry in await area.list("/")] == [("/docs", True), ("/notes", True)]
        assert [entry.path for entry in await area.list("/docs")] == ["/docs/a.txt"]
        assert [entry.path for entry in (await area.find("**/*.txt", limit=9)).entries] == [
            "/docs/a.txt",
            "/notes/a.txt",
        ]
        assert [entry.path for entry in (await area.find("notes/*", limit=9)).entries] == ["/notes/a.txt"]
        assert [entry.path for entry in (await area.find("*", "/notes", limit=9)).entries] == ["/notes/a.txt"]
        lines = (await area.search("needle", limit=9)).matches
        assert [(match.path, match.text) for match in lines] == [
            ("/docs/a.txt", "needle of Docs"), ("/notes/a.txt", "needle of Notes")
        ]  # fmt: skip
        cut = await area.search("needle", limit=1)
        assert ([match.path for match in cut.matches], cut.truncated) == (["/docs/a.txt"], True)
        assert (await area.find("**", limit=1)).truncated
        only = await area.search("needle", pattern="docs/*", limit=9)
        assert [match.path for match in only.matches] == ["/docs/a.txt"]
        assert await area.granted() == [
            GrantedFolder(id="notes", host_path=str(place / "Notes"), path="/local/notes", read_only=False),
            GrantedFolder(id="docs", host_path=str(place / "Docs"), path="/local/docs", read_only=True),
        ]

    granted(tmp_path, test)


def test_a_folder_that_is_only_read_is_not_written(tmp_path):
    async def test(area, _, place):
        for path in ("/docs/a.txt", "/docs/new/b.txt", "/docs"):
            await refused(area.write(path, b"x"), "read_only", place)
            await refused(area.write(path, b"x", new=True), "read_only", place)
        assert sorted(path.name for path in (place / "Docs").iterdir()) == ["a.txt"]
        assert (place / "Docs/a.txt").read_text() == "needle of Docs"
        await area.write("/notes/new/b.txt", b"written")
        assert (place / "Notes/new/b.txt").read_bytes() == b"written"

    granted(tmp_path, test)


def test_a_folder_that_is_taken_back_refuses_the_next_operation_of_the_same_turn(tmp_path):
    async def test(area, folders, place):
        assert (await area.read("/notes/a.txt", max_bytes=99)).content
        await folders.revoke("notes", caller=LOCAL)
        await every_operation_refused(area, "/notes", "no_such_folder", place)
        assert [entry.path for entry in await area.list("/")] == ["/docs"]
        assert [match.path for match in (await area.search("needle", limit=9)).matches] == ["/docs/a.txt"]
        await folders.grant(str(place / "Notes"), caller=LOCAL)
        assert (await area.read("/notes/a.txt", max_bytes=99)).content
        await refused(area.write("/notes/a.txt", b"x"), "read_only", place)

    granted(tmp_path, test)


def test_a_folder_that_was_taken_back_between_two_of_many_operations_is_refused_from_then_on(tmp_path):
    async def test(area, folders, _):
        async def read_on():
            codes = []
            for _ in range(50):
                try:
                    await area.read("/docs/a.txt", max_bytes=99)
                    codes.append("read")
                except PizzabotError as error:
                    codes.append(error.code)
            return codes

        reading = asyncio.create_task(read_on())
        await area.read("/docs/a.txt", max_bytes=99)
        await folders.revoke("docs", caller=LOCAL)
        after = asyncio.create_task(area.read("/docs/a.txt", max_bytes=99))
        await refused(after, "no_such_folder")
        codes = await reading
        assert sorted(codes, key=codes.index) == codes
        assert codes == sorted(codes, key=("read", "no_such_folder").index)

    granted(tmp_path, test)


def test_a_folder_that_became_a_link_is_refused_and_passed_over(tmp_path):
    async def test(area, _, place):
        (place / "outside").mkdir()
        (place / "outside/a.txt").write_text("needle outside")
        (place / "Notes").rename(place / "moved")
        (place / "Notes").symlink_to(place / "outside")
        await every_operation_refused(area, "/notes", "not_allowed", place)
        lines, files = await area.search("needle", limit=9), await area.find("**", limit=9)
        assert [match.path for match in lines.matches] == ["/docs/a.txt"]
        assert [entry.path for entry in files.entries] == ["/docs/a.txt"]
        assert lines.truncated
        assert files.truncated
        assert (place / "outside/a.txt").read_text() == "needle outside"

    granted(tmp_path, test)


def test_what_is_not_granted_or_no_path_is_refused(tmp_path):
    async def test(area, _, place):
        await every_operation_refused(area, "/none", "no_such_folder", place)
        await every_operation_refused(area, "/docs/../notes", "invalid_path", place)
        await every_operation_refused(area, "/docs/%2e%2e/notes", "invalid_path", place)
        await every_operation_refused(area, "docs", "invalid_path", place)
        await refused(area.write("/", b"x"), "not_a_file", place)
        await refused(area.read("/", max_bytes=9), "not_a_file", place)
        await refused(area.search("", limit=9), "invalid_text", place)
        await refused(area.find("", limit=9), "invalid_pattern", place)
        told = await refused(area.read("/docs/none.txt", max_bytes=9), "no_such_file", place)
        assert "'/docs/none.txt'" in told.detail

    granted(tmp_path, test)
