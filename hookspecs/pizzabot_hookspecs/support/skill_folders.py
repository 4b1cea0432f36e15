"""Bundles in a folder: each sub-directory one skill, read whole, within bounds, and never through a link.

For sources that keep skills on disk. A folder is gone through by descriptors, so that nothing that is swapped for a
link meanwhile leads out of it. What did not change since the last time is the same object again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pizzabot_hookspecs.skill_sources import SKILL_FILE, Origin, RawSkill

MAX_SKILL_FILES = 256
MAX_SKILL_BYTES = 50 * 1024 * 1024
"""Of all files of one bundle; they are held in memory."""
MAX_FOLDER_BYTES = 256 * 1024 * 1024
"""Of all bundles of one folder."""
MAX_FOLDER_SKILLS = 2000
MAX_SKILL_DEPTH = 16

_LITTER = frozenset({".DS_Store", "__MACOSX", "__pycache__", ".git", "Thumbs.db"})
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_Mark = tuple[str, int, int, int, int]


class _UnreadableError(Exception):
    """Why the bundle cannot be used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    marks: tuple[_Mark, ...]
    size: int
    skill: RawSkill


class SkillFolder:
    """The bundles of one folder. For one thread at a time; a folder that is missing has none.

    With `files_are_skills` the caller takes `<id>.md` files of the folder as skills; else one is told as a fault.
    """

    def __init__(
        self, path: Path, *, origin: Origin, plugin: str | None = None, files_are_skills: bool = False
    ) -> None:
        self.path = path
        self._tells_files = not files_are_skills
        self._origin = origin
        self._plugin = plugin
        self._known: dict[str, _Known] = {}

    def read(self) -> list[RawSkill]:
        """Every bundle, by id. One that cannot be read has a `fault`; hidden folders are none. Raises `OSError`."""
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._known = {}
            return []
        try:
            return self._read_all(folder)
        finally:
            os.close(folder)

    def read_one(self, name: str) -> RawSkill:
        """The bundle in the sub-directory `name`. For a folder of which only single bundles count. Raises `OSError`."""
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            known = self._one(folder, name, MAX_FOLDER_BYTES)
        finally:
            os.close(folder)
        self._known[name] = known
        return known.skill

    def _read_all(self, folder: int) -> list[RawSkill]:
        with os.scandir(folder) as entries:
            shown = [entry for entry in entries if not _is_hidden(entry.name)]
            names = sorted(entry.name for entry in shown if not entry.is_file(follow_symlinks=False))
            loose = sorted(entry.name for entry in shown if self._tells_files and entry.is_file(follow_symlinks=False))
        now: dict[str, _Known] = {}
        room = MAX_FOLDER_BYTES
        for place, name in enumerate(names):
            if place >= MAX_FOLDER_SKILLS:
                known = self._faulty(name, f"the folder has more than {MAX_FOLDER_SKILLS} skills")
            else:
                known = self._one(folder, name, room)
            now[name] = known
            room -= known.size
        for name in loose[:MAX_FOLDER_SKILLS]:
            if name.endswith(".md") and name[:-3] not in now and _begins_with_frontmatter(folder, name):
                stem = name[:-3]
                now[stem] = self._faulty(stem, f"{name} is a file: make a folder {stem} with it as SKILL.md")
        self._known = now
        return [known.skill for known in now.values()]

    def _one(self, folder: int, name: str, room: int) -> _Known:
        try:
            return self._bundle(folder, name, room)
        except _UnreadableError as error:
            return self._faulty(name, str(error))
        except OSError as error:
            return self._faulty(name, f"it cannot be read: {error.strerror or type(error).__name__}")

    def _bundle(self, folder: int, name: str, room: int) -> _Known:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise _UnreadableError("it is a link: links are not followed; copy the folder here")
        bundle = os.open(name, _DIRECTORY, dir_fd=folder)
        try:
            marks = tuple(sorted(_marks(bundle)))
            size = sum(mark[1] for mark in marks)
            known = self._known.get(name)
            if known is not None and known.skill.fault is None and known.marks == marks and size <= room:
                return known
            _check_sizes(marks, size, room)
            files = {mark[0]: _content(bundle, mark) for mark in _skill_file_first(marks)}
        finally:
            os.close(bundle)
        skill = RawSkill(id=_shown(name), files=files, origin=self._origin, plugin=self._plugin)
        return _Known(marks=marks, size=size, skill=skill)

    def _faulty(self, name: str, fault: str) -> _Known:
        skill = RawSkill(id=_shown(name), origin=self._origin, plugin=self._plugin, fault=fault)
        before = self._known.get(name)
        if before is not None and before.skill == skill:
            skill = before.skill
        return _Known(marks=(), size=0, skill=skill)


def _marks(bundle: int) -> Iterator[_Mark]:
    """Path, size and what changes when a file does, of every file in it."""
    waiting: list[tuple[str, int]] = [("", os.dup(bundle))]
    count = 0
    try:
        while waiting:
            prefix, folder = waiting.pop()
            try:
                if prefix.count("/") > MAX_SKILL_DEPTH:
                    raise _UnreadableError(f"its folders are nested deeper than {MAX_SKILL_DEPTH}")
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.name in _LITTER:
                            continue
                        count += 1
                        if count > 2 * MAX_SKILL_FILES:
                            raise _UnreadableError(f"it has more than {MAX_SKILL_FILES} files")
                        found = entry.stat(follow_symlinks=False)
                        path = prefix + _shown(entry.name)
                        if stat.S_ISDIR(found.st_mode):
                            waiting.append((f"{path}/", os.open(entry.name, _DIRECTORY, dir_fd=folder)))
                        else:
                            _check_kind(path, found)
                            yield path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
            finally:
                os.close(folder)
    finally:
        for _, folder in waiting:
            os.close(folder)


def _check_kind(path: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise _UnreadableError(f"{path} is a link: links are not followed; copy the file into the skill")
    if not stat.S_ISREG(found.st_mode):
        raise _UnreadableError(f"{path} is no file")
    if "�" in path:
        raise _UnreadableError(f"the name {path!r} is not UTF-8")


def _check_sizes(marks: tuple[_Mark, ...], size: int, room: int) -> None:
    if len(marks) > MAX_SKILL_FILES:
        raise _UnreadableError(f"it has {len(marks)} files; at most {MAX_SKILL_FILES} are taken")
    if size > MAX_SKILL_BYTES:
        raise _UnreadableError(f"its files have {size} bytes together; at most {MAX_SKILL_BYTES} are taken")
    if size > room:
        raise _UnreadableError(f"the skills of this folder have more than {MAX_FOLDER_BYTES} bytes together")


def _skill_file_first(marks: tuple[_Mark, ...]) -> list[_Mark]:
    return sorted(marks, key=lambda mark: (mark[0] != SKILL_FILE, mark[0]))


def _content(bundle: int, mark: _Mark) -> bytes:
    """The file's bytes; each folder on the way is opened without following a link."""
    *parents, name = mark[0].split("/")
    folder = os.dup(bundle)
    try:
        for parent in parents:
            inner = os.open(parent, _DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        file = os.open(name, _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with open(file, "rb") as opened:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _UnreadableError(f"{mark[0]} is no file")
        content = opened.read(mark[1] + 1)
    if len(content) > mark[1]:
        raise _UnreadableError(f"{mark[0]} is being written")
    return content


def _begins_with_frontmatter(folder: int, name: str) -> bool:
    """Whether a file beside the bundles was meant as a skill; a README is not."""
    try:
        with open(os.open(name, _FILE, dir_fd=folder), "rb") as opened:  # noqa: PTH123 - a descriptor
            return opened.read(16).lstrip(b"\xef\xbb\xbf\r\n").startswith(b"---")
    except OSError:
        return False


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in _LITTER


def _shown(name: str) -> str:
    """A name that is not UTF-8 cannot be said otherwise."""
    return name.encode(errors="surrogateescape").decode(errors="replace")
