"""The folder of a person's own skills: links are never followed, a crash leaves the old or the new, bounds hold."""

import asyncio
import os
import stat
import subprocess
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.user_skills import bundles
from pizzabot_builtin_plugins.user_skills.source import UserSkills
from pizzabot_builtin_plugins.user_skills.watching import FolderWatch, open_watch
from pizzabot_hookspecs import Conflict, InvalidRequest, Unavailable
from pizzabot_hookspecs.skill_sources import Origin
from pizzabot_hookspecs.support import skill_folders
from pizzabot_hookspecs.support.skill_folders import MAX_SKILL_DEPTH, MAX_SKILL_FILES, SkillFolder

FILES = {"SKILL.md": b"---\ndescription: d\n---\n", "a/b.txt": b"x"}


def folder(path):
    bundles.prepare(path)
    return SkillFolder(path, origin=Origin.USER)


def only(path):
    (found,) = folder(path).read()
    return found


class Log:
    def __init__(self):
        self.events = []

    def warning(self, event, **facts):
        self.events.append(event)


def test_everything_is_private_to_the_person(tmp_path):
    root = tmp_path / "skills"
    bundles.prepare(root)
    bundles.put(root, "s", FILES, new=True)
    modes = {path.relative_to(root).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert modes == {".": 0o700, "s": 0o700, "s/SKILL.md": 0o600, "s/a": 0o700, "s/a/b.txt": 0o600}


@pytest.mark.parametrize("where", ["SKILL.md", "a/secret", "linked"])
def test_a_link_is_never_followed_and_the_skill_says_so(tmp_path, where):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("hunter2")
    root = tmp_path / "skills"
    bundles.prepare(root)
    bundles.put(root, "s", FILES, new=True)
    target = root / "s" / where
    target.unlink(missing_ok=True)
    target.symlink_to(secret if where == "linked" else secret / "key")
    found = only(root)
    assert (found.files, "link" in found.fault) == ({}, True)


def test_a_skill_that_is_a_link_is_listed_and_not_read(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "skills"
    bundles.prepare(outside)
    bundles.put(outside, "s", FILES, new=True)
    bundles.prepare(root)
    (root / "s").symlink_to(outside / "s")
    assert "link" in only(root).fault
    assert bundles.remove(root, "s")
    assert (outside / "s" / "SKILL.md").exists()


def test_writing_over_a_link_replaces_the_link_not_what_it_leads_to(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "skills"
    bundles.prepare(outside)
    bundles.put(outside, "s", FILES, new=True)
    bundles.prepare(root)
    (root / "s").symlink_to(outside / "s")
    with pytest.raises(Conflict):
        bundles.put(root, "s", FILES, new=True)
    bundles.put(root, "s", {"SKILL.md": b"new"}, new=False)
    assert (outside / "s" / "SKILL.md").read_bytes() == FILES["SKILL.md"]
    assert dict(only(root).files) == {"SKILL.md": b"new"}


def test_a_pipe_and_deep_or_many_or_large_files_are_faults_that_do_not_hang(tmp_path, monkeypatch):
    root = tmp_path / "skills"
    bundles.prepare(root)
    for skill_id in ("pipe", "deep", "many", "large", "good"):
        bundles.put(root, skill_id, FILES, new=True)
    os.mkfifo(root / "pipe" / "p")
    (root / "deep" / ("d/" * (MAX_SKILL_DEPTH + 2))).mkdir(parents=True)
    for place in range(MAX_SKILL_FILES + 1):
        (root / "many" / f"f{place}").touch()
    (root / "large" / "big").write_bytes(b"x" * 2000)
    monkeypatch.setattr(skill_folders, "MAX_SKILL_BYTES", 1000)
    found = {one.id: one.fault for one in folder(root).read()}
    assert "no file" in found["pipe"]
    assert "deeper" in found["deep"]
    assert str(MAX_SKILL_FILES) in found["many"]
    assert "1000" in found["large"]
    assert found["good"] is None


def test_a_folder_over_its_limits_tells_which_skills_are_left_out(tmp_path, monkeypatch):
    root = tmp_path / "skills"
    bundles.prepare(root)
    for place in range(4):
        bundles.put(root, f"s{place}", FILES, new=True)
    monkeypatch.setattr(skill_folders, "MAX_FOLDER_SKILLS", 3)
    monkeypatch.setattr(skill_folders, "MAX_FOLDER_BYTES", 2 * sum(map(len, FILES.values())))
    faults = [one.fault for one in folder(root).read()]
    assert faults[:2] == [None, None]
    assert "bytes" in faults[2]
    assert "3 skills" in faults[3]


def test_hidden_folders_and_litter_are_no_skills_and_plain_files_neither(tmp_path):
    root = tmp_path / "skills"
    bundles.prepare(root)
    bundles.put(root, "s", {**FILES, ".DS_Store": b"x", "__pycache__/x": b"x"}, new=True)
    (root / ".git").mkdir()
    (root / "README.md").write_text("x")
    assert (only(root).id, set(only(root).files)) == ("s", set(FILES))


def test_a_skill_file_that_lies_beside_the_folders_is_told_and_a_readme_is_not(tmp_path):
    root = tmp_path / "skills"
    bundles.prepare(root)
    bundles.put(root, "s", FILES, new=True)
    (root / "loose.md").write_text("\ufeff---\ndescription: d\n---\n")
    (root / "s.md").write_text("---\ndescription: of an old copy\n---\n")
    (root / "README.md").write_text("# My skills\n")
    (root / "linked.md").symlink_to(root / "loose.md")
    found = {skill.id: skill.fault for skill in folder(root).read()}
    assert set(found) == {"s", "loose", "linked.md"}
    assert found["s"] is None
    assert "make a folder loose with it as SKILL.md" in found["loose"]


def test_what_did_not_change_is_the_same_object_and_a_changed_file_is_read_again(tmp_path):
    root = tmp_path / "skills"
    source = folder(root)
    bundles.put(root, "a", FILES, new=True)
    bundles.put(root, "b", FILES, new=True)
    first = source.read()
    (root / "a" / "a" / "b.txt").write_bytes(b"y")
    second = source.read()
    assert second[1] is first[1]
    assert second[0].files["a/b.txt"] == b"y"


def test_a_missing_folder_has_no_skills(tmp_path):
    assert SkillFolder(tmp_path / "none", origin=Origin.USER).read() == []


def test_a_crash_between_the_two_renames_is_finished_at_the_next_start(tmp_path):
    root = tmp_path / "skills"
    bundles.prepare(root)
    bundles.put(root, "s", FILES, new=True)
    (root / "s").rename(root / ".old-s")
    (root / ".new-123").mkdir()
    (root / ".gone-123").mkdir()
    assert only(root).files == FILES
    assert [path.name for path in root.iterdir()] == ["s"]


def test_an_old_copy_beside_the_new_one_is_removed_at_the_next_start(tmp_path):
    root = tmp_path / "skills"
    bundles.prepare(root)
    bundles.put(root, "s", FILES, new=True)
    (root / ".old-s").mkdir()
    bundles.prepare(root)
    assert [path.name for path in root.iterdir()] == ["s"]


def test_a_write_that_fails_leaves_the_old_bundle_and_nothing_else(tmp_path, monkeypatch):
    root = tmp_path / "skills"
    bundles.prepare(root)
    bundles.put(root, "s", FILES, new=True)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable) as caught:
        bundles.put(root, "s", {"SKILL.md": b"new"}, new=False)
    assert caught.value.code == "skills_unwritable"
    assert [path.name for path in root.iterdir()] == ["s"]
    assert only(root).files == FILES


@pytest.mark.parametrize("skill_id", ["..", ".", "", ".hidden", "a/b", "a\\b", "a\x00"])
def test_an_id_that_is_no_name_is_written_nowhere(tmp_path, skill_id):
    root = tmp_path / "skills"
    bundles.prepare(root)
    for act in (lambda: bundles.put(root, skill_id, FILES, new=True), lambda: bundles.remove(root, skill_id)):
        with pytest.raises(InvalidRequest):
            act()
    assert [path.name for path in tmp_path.iterdir()] == ["skills"]


def test_a_file_where_the_folder_should_be_is_an_error_that_names_it(tmp_path):
    (tmp_path / "skills").write_text("x")
    with pytest.raises(Unavailable) as caught:
        bundles.prepare(tmp_path / "skills")
    assert str(tmp_path / "skills") in caught.value.detail


def test_where_there_are_no_watches_left_the_folder_is_polled(tmp_path, monkeypatch):
    from watchfiles import _rust_notify

    real, log = _rust_notify.RustNotify, Log()

    def scarce(paths, debug, poll, *more):
        if not poll:
            raise OSError(28, "inotify watch limit reached")
        return real(paths, debug, poll, *more)

    monkeypatch.setattr(_rust_notify, "RustNotify", scarce)

    async def main():
        watch = await open_watch(tmp_path, log)
        async with aclosing(watch.bursts()) as found:
            (tmp_path / "new").mkdir()
            await asyncio.wait_for(anext(found), 5)
        watch.close()

    asyncio.run(main())
    assert log.events == ["skills.watch_polls"]


LOCKED = """
import asyncio, os, sys
from contextlib import aclosing
from pathlib import Path
from pizzabot_builtin_plugins.bundles.watching import bursts
from pizzabot_builtin_plugins.user_skills.watching import open_watch
import concurrent.futures.thread, watchfiles  # before nobody may read where Python lies

class Log:
    def warning(self, event, **_): print(event)

async def heard(found, names, folder):
    for name in names:
        (folder / name / "SKILL.md").write_text("x")
        await asyncio.wait_for(anext(found), 5)

async def main(folder):
    names = [f"n{number}" for number in range(20)]
    for name in (*names, "locked"):
        (folder / name).mkdir()
        if os.geteuid() == 0:
            os.chown(folder / name, 65534, 65534)
    (folder / "locked").chmod(0)
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.setuid(65534)
    watch = await open_watch(folder, Log())
    async with aclosing(watch.bursts()) as found:
        await heard(found, names, folder)
    watch.close()
    async with aclosing(bursts([folder], Log())) as found:
        await asyncio.wait_for(anext(found), 5)
        await heard(found, names, folder)
    print("heard")

os.umask(0)
asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_folder_that_cannot_be_read_does_not_blind_the_watch_to_the_others():
    """As nobody where the tests run as root, whom no mode keeps out; so not below pytest's private folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", LOCKED, folder]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        Path(folder, "locked").chmod(0o700)
        assert told.stdout == "heard\n", told.stderr


def test_a_watch_that_dies_raises_what_it_died_of_and_is_begun_again(tmp_path):
    class Dying:
        def watch(self, *_):
            raise OSError(5, "the disk is gone")

        def close(self):
            pass

    async def main():
        source = UserSkills(tmp_path / "skills", Log())
        async with source:
            source._watch.close()
            source._watch = FolderWatch(Dying())
            with pytest.raises(OSError, match="the disk is gone"):
                async with aclosing(source.changes()) as found:
                    await anext(found)
            begun, begin = asyncio.Event(), source._begin_to_watch

            async def noticed():
                watch = await begin()
                begun.set()
                return watch

            source._begin_to_watch = noticed
            async with aclosing(source.changes()) as found:
                waiting = asyncio.ensure_future(anext(found))
                await asyncio.wait_for(begun.wait(), 5)
                (source.path / "new").mkdir()
                await asyncio.wait_for(waiting, 5)

    asyncio.run(main())


def test_a_folder_that_is_removed_is_made_again_and_watched_again(tmp_path):
    async def main():
        async with UserSkills(tmp_path / "skills", Log()) as source:
            source.path.rmdir()
            assert await source.skills() == []
            with pytest.raises(FileNotFoundError, match="was removed"):  # noqa: PT012 - a watch may say too much first
                async with aclosing(source.changes()) as found:
                    while True:
                        await asyncio.wait_for(anext(found), 5)
            (source.path / "new").mkdir()
            async with aclosing(source.changes()) as found:
                waiting = asyncio.ensure_future(anext(found))
                while not waiting.done():
                    (source.path / f"more{len(list(source.path.iterdir()))}").mkdir()
                    await asyncio.wait({waiting}, timeout=0.2)

    asyncio.run(main())


def test_what_changes_while_nobody_reads_is_told_to_the_next_reader(tmp_path):
    async def main():
        async with UserSkills(tmp_path / "skills", Log()) as source:
            (source.path / "new").mkdir()
            async with aclosing(source.changes()) as found:
                await asyncio.wait_for(anext(found), 5)

    asyncio.run(main())


def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path):
    with pytest.raises(FileNotFoundError):
        asyncio.run(open_watch(tmp_path / "missing", Log()))
