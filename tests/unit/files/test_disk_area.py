"""A folder of the disk as an area: what it reads and writes, and its limits."""

import asyncio
import os
import resource
import stat
import threading
import unicodedata

import pytest
from area_rig import on_area, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pizzabot.host.files import descriptors, disk_area, disk_reading, disk_writing
from pizzabot.host.files.disk_searching import anything
from pizzabot.host.files.paths import problem_of
from pizzabot.host.files.walking import MAX_DEPTH, MAX_SEARCHED_FILE, Budget

NFC = unicodedata.normalize("NFC", "Ünïcödé.txt")
NFD = unicodedata.normalize("NFD", NFC)
NAMES = [
    "a b.txt", "[...slug]", "a..b.txt", "ファイル.txt", "مذكرة.txt", "заметки", "🍕.md", "50%.txt", "x%2fy", "'\"$`",
    "-rf", NFD,
]  # fmt: skip


def test_what_is_written_is_read_back_with_a_tag_that_says_its_version(tmp_path):
    async def test(area, folder):
        entry = await area.write("/a/b/c.txt", b"one")
        assert (entry.path, entry.size, entry.is_folder) == ("/a/b/c.txt", 3, False)
        assert (folder / "a/b/c.txt").read_bytes() == b"one"
        first = await area.read("/a/b/c.txt", max_bytes=3)
        await area.write("/a/b/c.txt", b"two", base=first.tag)
        second = await area.read("/a/b/c.txt", max_bytes=3)
        assert (second.content, second.tag != first.tag) == (b"two", True)
        await refused(area.write("/a/b/c.txt", b"three", base=first.tag), "file_changed", folder)
        await refused(area.write("/gone.txt", b"x", base=first.tag), "file_changed", folder)
        assert (folder / "a/b/c.txt").read_bytes() == b"two"
        assert [entry.path for entry in await area.list("/")] == ["/a"]

    on_area(tmp_path, test)


def test_a_new_file_takes_no_other_file_s_place(tmp_path):
    async def test(area, folder):
        await area.write("/a.txt", b"one", new=True)
        await area.write("/a.txt", b"one", new=True)
        await refused(area.write("/a.txt", b"two", new=True), "file_exists", folder)
        assert (folder / "a.txt").read_bytes() == b"one"

    on_area(tmp_path, test)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_any_script_is_written_listed_found_and_read(tmp_path, name):
    async def test(area, folder):
        await area.write(f"/{name}/{name}", "text with größe".encode())
        assert [entry.path for entry in await area.list("/")] == [f"/{name}"]
        assert [entry.path for entry in (await area.find("**", limit=10)).entries] == [f"/{name}/{name}"]
        found = await area.search("größe", limit=10)
        assert [match.path for match in found.matches] == [f"/{name}/{name}"]
        assert (await area.read(f"/{name}/{name}", max_bytes=100)).path == f"/{name}/{name}"
        assert [path.name for path in folder.iterdir()] == [name]

    on_area(tmp_path, test)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4))
def test_any_path_is_refused_or_stays_in_the_folder(tmp_path_factory, names):
    path = "/" + "/".join(names)

    async def test(area, folder):
        if problem_of(path) is not None:
            await refused(area.write(path, b"x"), "invalid_path", folder)
            await refused(area.read(path, max_bytes=1), "invalid_path", folder)
            assert list(folder.iterdir()) == []
        else:
            await area.write(path, b"x")
            assert (await area.read(path, max_bytes=1)).content == b"x"
            assert [entry.path for entry in (await area.find("**", limit=9)).entries] == [path]

    on_area(tmp_path_factory.mktemp("area"), test)


def test_a_read_finds_the_only_name_of_another_normal_form_and_says_which(tmp_path):
    async def test(area, folder):
        (folder / NFD).mkdir()
        (folder / NFD / "ﬁle.txt").write_bytes(b"found")
        content = await area.read(f"/{NFC}/file.txt", max_bytes=10)
        assert (content.content, content.path) == (b"found", f"/{NFD}/ﬁle.txt")
        assert [entry.path for entry in await area.list(f"/{NFC}")] == [f"/{NFD}/ﬁle.txt"]
        assert [match.path for match in (await area.search("found", f"/{NFC}/file.txt", limit=2)).matches]

    on_area(tmp_path, test)


def test_a_name_that_could_be_two_is_none(tmp_path):
    async def test(area, folder):
        (folder / "ﬁle.txt").write_bytes(b"1")
        (folder / "\N{FULLWIDTH LATIN SMALL LETTER F}ile.txt").write_bytes(b"2")
        await refused(area.read("/file.txt", max_bytes=10), "no_such_file", folder)
        assert (await area.read("/ﬁle.txt", max_bytes=10)).content == b"1"

    on_area(tmp_path, test)


def test_a_write_takes_the_path_as_it_is(tmp_path):
    async def test(area, folder):
        await area.write(f"/{NFD}", b"old")
        await area.write(f"/{NFC}", b"new")
        assert sorted(path.name for path in folder.iterdir()) == sorted([NFC, NFD])
        assert (await area.read(f"/{NFD}", max_bytes=3)).content == b"old"

    on_area(tmp_path, test)


def test_names_that_no_path_can_have_are_left_out_and_a_search_says_so(tmp_path):
    async def test(area, folder):
        for name in (b"bad\xff.txt", b"back\\slash.txt", b"line\nbreak.txt", b"%2e%2e"):
            (folder / os.fsdecode(name)).write_bytes(b"needle")
        (folder / "good.txt").write_bytes(b"needle")
        assert [entry.path for entry in await area.list("/")] == ["/good.txt"]
        found, lines = await area.find("**", limit=10), await area.search("needle", limit=10)
        assert [entry.path for entry in found.entries] == [match.path for match in lines.matches] == ["/good.txt"]
        assert found.truncated
        assert lines.truncated

    on_area(tmp_path, test)


def test_what_is_missing_or_of_another_kind_has_a_code_of_its_own(tmp_path):
    async def test(area, folder):
        (folder / "file.txt").write_bytes(b"12345")
        (folder / "sub").mkdir()
        await refused(area.read("/none", max_bytes=9), "no_such_file", folder)
        await refused(area.read("/file.txt/none", max_bytes=9), "no_such_file", folder)
        await refused(area.list("/none"), "no_such_file", folder)
        await refused(area.find("*", "/none", limit=9), "no_such_file", folder)
        await refused(area.search("x", "/none", limit=9), "no_such_file", folder)
        await refused(area.list("/file.txt"), "not_a_folder", folder)
        await refused(area.find("*", "/file.txt", limit=9), "not_a_folder", folder)
        await refused(area.write("/file.txt/none", b""), "not_a_folder", folder)
        for call in (area.read("/sub", max_bytes=9), area.write("/sub", b""), area.read("/", max_bytes=9)):
            await refused(call, "not_a_file", folder)
        await refused(area.write("/", b""), "not_a_file", folder)
        await refused(area.read("/file.txt", max_bytes=4), "file_too_large", folder)
        await refused(area.write("/" + "n" * 300, b""), "invalid_path", folder)
        await refused(area.read("/" + "n" * 300, max_bytes=9), "invalid_path", folder)
        await refused(area.find("", limit=9), "invalid_pattern", folder)
        await refused(area.search("", limit=9), "invalid_text", folder)

    on_area(tmp_path, test)


def test_paths_go_out_as_the_area_calls_them(tmp_path):
    async def test(area, _):
        assert (await area.write("/a/b.txt", b"needle")).path == "/docs/a/b.txt"
        assert (await area.read("/a/b.txt", max_bytes=9)).path == "/docs/a/b.txt"
        assert [entry.path for entry in await area.list("/")] == ["/docs/a"]
        assert [entry.path for entry in (await area.find("*.txt", "/a", limit=9)).entries] == ["/docs/a/b.txt"]
        assert [match.path for match in (await area.search("needle", limit=9)).matches] == ["/docs/a/b.txt"]
        assert "'/docs/x'" in (await refused(area.read("/x", max_bytes=9), "no_such_file")).detail
        assert "'/docs/a'" in (await refused(area.write("/a", b""), "not_a_file")).detail

    on_area(tmp_path, test, called="/docs")


def test_found_files_and_lines_are_in_the_order_of_their_paths_and_cut_at_the_limit(tmp_path):
    async def test(area, _):
        paths = sorted(f"/{name}" for name in ("a/z", "a.txt", "a-b/c", "b", "a/b/c"))
        for path in paths:
            await area.write(path, b"needle\nneedle")
        assert [entry.path for entry in (await area.find("**", limit=5)).entries] == paths
        assert not (await area.find("**", limit=5)).truncated
        found = await area.find("**", limit=2)
        assert ([entry.path for entry in found.entries], found.truncated) == (paths[:2], True)
        lines = await area.search("needle", limit=3)
        assert [(match.path, match.line) for match in lines.matches] == [(paths[0], 1), (paths[0], 2), (paths[1], 1)]
        assert lines.truncated
        assert not (await area.search("needle", limit=10)).truncated
        only = await area.search("needle", pattern="a/*", limit=9)
        assert {match.path for match in only.matches} == {"/a/z"}

    on_area(tmp_path, test)


def test_a_search_passes_over_what_is_not_text(tmp_path):
    async def test(area, folder):
        (folder / "a.bin").write_bytes(b"needle\0")
        (folder / "photo.png").write_bytes(b"needle")
        (folder / "a.txt").write_bytes(b"needle")
        found = await area.search("needle", limit=9)
        assert ([match.path for match in found.matches], found.truncated) == (["/a.txt"], False)

    on_area(tmp_path, test)


def test_a_walk_that_may_look_at_no_more_says_that_it_is_not_all(tmp_path):
    async def test(area, folder):
        for number in range(20):
            (folder / f"{number:02}.txt").write_bytes(b"needle" * 10)
        for budget in (Budget(entries=5), Budget(bytes=300)):
            lines = await area.search_where("needle", anything, "/", limit=100, budget=budget)
            assert (len(lines), budget.truncated) == (5, True)
        late = Budget(seconds=1, clock=iter([0.0, *[0.5] * 3, *[2.0] * 100]).__next__)
        assert len(await area.find_where(anything, "/", limit=100, budget=late)) == 3
        assert late.truncated
        deep = folder
        for _ in range(MAX_DEPTH + 1):
            deep /= "d"
        deep.mkdir(parents=True)
        (deep / "bottom").touch()
        assert (await area.find("**/bottom", limit=9)).truncated
        (folder / "large.txt").write_bytes(b"x" * MAX_SEARCHED_FILE + b"needle")
        found = await area.search("needle", "/large.txt", limit=9)
        assert (list(found.matches), found.truncated) == ([], True)

    on_area(tmp_path, test)


def test_a_walk_that_nobody_waits_for_any_more_ends(tmp_path):
    async def test(area, folder):
        for number in range(50):
            (folder / f"{number}.txt").touch()
        looking, go_on = threading.Event(), threading.Event()
        looked_at = []

        def accepts(path):
            looked_at.append(path)
            looking.set()
            return go_on.wait()

        walk = asyncio.create_task(area.find_where(accepts, "/", limit=100, budget=Budget()))
        await asyncio.to_thread(looking.wait)
        walk.cancel()
        await asyncio.gather(walk, return_exceptions=True)
        go_on.set()
        await asyncio.to_thread(area._pool._executor.shutdown)
        assert len(looked_at) == 1

    on_area(tmp_path, test)


def test_the_first_10000_entries_of_a_folder_are_listed(tmp_path, monkeypatch):
    assert disk_reading.MAX_LISTED == 10_000
    monkeypatch.setattr(disk_area, "MAX_LISTED", 3)

    async def test(area, folder):
        for name in "ebdca":
            (folder / name).touch()
        assert [entry.path for entry in await area.list("/")] == ["/a", "/b", "/c"]

    on_area(tmp_path, test)


def test_a_name_is_not_looked_for_among_more_names_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(descriptors, "MAX_NAMES_COMPARED", 3)

    async def test(area, folder):
        for name in ("a", "b", NFD):
            (folder / name).touch()
        assert (await area.read(f"/{NFC}", max_bytes=1)).path == f"/{NFD}"
        (folder / "c").touch()
        await refused(area.read(f"/{NFC}", max_bytes=1), "no_such_file", folder)

    on_area(tmp_path, test)


def test_more_than_50_mib_are_not_written(tmp_path):
    async def test(area, folder):
        await refused(area.write("/a.bin", bytes(disk_writing.MAX_WRITTEN + 1)), "file_too_large", folder)
        assert list(folder.iterdir()) == []

    on_area(tmp_path, test)


def test_a_write_that_fails_halfway_leaves_the_file_as_it_was_and_no_new_folders(tmp_path):
    async def test(area, folder):
        (folder / "a.txt").write_bytes(b"before")
        (folder / "old").mkdir()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            told = await refused(area.write("/a.txt", bytes(10_000)), "file_failed", folder)
            await refused(area.write("/old/new/newer/b.txt", bytes(10_000)), "file_failed", folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "file too large" in told.detail
        assert (folder / "a.txt").read_bytes() == b"before"
        assert sorted(path.name for path in folder.rglob("*")) == ["a.txt", "old"]

    on_area(tmp_path, test)


def test_a_file_keeps_its_permissions_and_one_that_is_marked_read_only_is_not_written(tmp_path):
    async def test(area, folder):
        (folder / "run.sh").write_bytes(b"1")
        (folder / "run.sh").chmod(0o750)
        await area.write("/run.sh", b"2")
        assert stat.S_IMODE((folder / "run.sh").stat().st_mode) == 0o750
        (folder / "run.sh").chmod(0o444)
        await refused(area.write("/run.sh", b"3"), "file_failed", folder)
        assert (folder / "run.sh").read_bytes() == b"2"

    on_area(tmp_path, test)


def test_a_file_that_is_being_written_is_not_shown(tmp_path):
    async def test(area, folder):
        (folder / ".pizzabot-0123456789abcdef.tmp").write_bytes(b"needle")
        assert list(await area.list("/")) == []
        assert list((await area.search("needle", limit=9)).matches) == []

    on_area(tmp_path, test)


def test_of_writers_with_the_same_base_one_wins(tmp_path):
    async def test(area, folder):
        await area.write("/a.txt", b"0")
        base = (await area.read("/a.txt", max_bytes=9)).tag
        writes = [area.write("/a.txt", f"{number + 1}".encode(), base=base) for number in range(20)]
        results = await asyncio.gather(*writes, return_exceptions=True)
        won = [number for number, result in enumerate(results) if not isinstance(result, Exception)]
        assert len(won) == 1
        assert {result.code for result in results if isinstance(result, Exception)} == {"file_changed"}
        assert (folder / "a.txt").read_bytes() == f"{won[0] + 1}".encode()

    on_area(tmp_path, test)
