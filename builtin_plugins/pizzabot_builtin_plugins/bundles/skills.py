"""The skills of a bundle: those of its folder `skills`, and those that its manifest names (spec/04 §1.3, §6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pizzabot_builtin_plugins.bundles.faults import BundleFaultError
from pizzabot_builtin_plugins.bundles.inside import inside, own_file
from pizzabot_builtin_plugins.bundles.json_files import read_bytes
from pizzabot_builtin_plugins.bundles.manifest import Manifest
from pizzabot_hookspecs.skill_sources import SKILL_FILE, Origin, RawSkill
from pizzabot_hookspecs.support.skill_folders import SkillFolder

FOLDER = "skills"
MAX_SKILL_FILE_BYTES = 1024 * 1024
"""Of a skill that is a single file."""
MAX_SKILLS = 500
"""Of one bundle."""

_DOCUMENTS = frozenset({"readme", "license", "changelog", "contributing", "agents", "claude", "security"})
"""Names of files beside skills that are read by people."""


class SkillFolders:
    """Remembers what was read: a skill that did not change is the same object again. For one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str], SkillFolder] = {}

    def of(self, path: Path, plugin: str) -> SkillFolder:
        folder = self._known.get((path, plugin))
        if folder is None:
            folder = SkillFolder(path, origin=Origin.PLUGIN, plugin=plugin, files_are_skills=True)
            self._known[path, plugin] = folder
        return folder

    def forget_missing(self) -> None:
        """What was deleted is not remembered for ever."""
        self._known = {key: folder for key, folder in self._known.items() if key[0].is_dir()}


def skills_of(root: Path, manifest: Manifest, folders: SkillFolders) -> tuple[RawSkill, ...]:
    """Raises `BundleFaultError` for a path that is none, and for an id that two different skills have."""
    found: dict[str, tuple[Path, RawSkill]] = {}
    for path, keys in _named(root, manifest):
        for real, skill in _contributed(root, path, manifest, folders, keys):
            known = found.get(skill.id)
            if known is not None and known[0] != real:
                raise manifest.said.fault(f"two of its skills have the id {skill.id!r}", *keys)
            found[skill.id] = (real, skill)
    if len(found) > MAX_SKILLS:
        raise BundleFaultError(f"it has {len(found)} skills; at most {MAX_SKILLS} are taken")
    return tuple(skill for _, skill in found.values())


def _named(root: Path, manifest: Manifest) -> Iterator[tuple[Path, tuple[str, ...]]]:
    usual = own_file(root, FOLDER)
    if usual is not None and usual.is_dir():
        yield usual.resolve(), ()
    for written in manifest.skills:
        yield inside(root, written, said=manifest.said, keys=("skills",)), ("skills",)


def _contributed(
    root: Path, path: Path, manifest: Manifest, folders: SkillFolders, keys: tuple[str, ...]
) -> Iterator[tuple[Path, RawSkill]]:
    if path.is_dir():
        if (path / SKILL_FILE).is_file():
            skill = folders.of(path.parent, manifest.name).read_one(path.name)
            yield path, replace(skill, id=manifest.name) if path == root else skill
            return
        for skill in folders.of(path, manifest.name).read():
            yield path / skill.id, skill
        for file in sorted(path.iterdir()):
            if file.suffix == ".md" and not file.name.startswith(".") and file.is_file() and not file.is_symlink():
                skill = _single(root, file, manifest)
                if not _is_document(file, skill):
                    yield file, skill
    elif path.suffix == ".md":
        yield path, _single(root, path, manifest)
    else:
        shown = str(path.relative_to(root))
        raise manifest.said.fault(f"{shown!r} is neither a folder nor a `.md` file", *keys)


def _single(root: Path, file: Path, manifest: Manifest) -> RawSkill:
    name = str(file.relative_to(root))
    content = read_bytes(file, name.encode(errors="replace").decode(), MAX_SKILL_FILE_BYTES)
    skill_id = file.stem.encode(errors="replace").decode()
    return RawSkill(id=skill_id, files={SKILL_FILE: content}, origin=Origin.PLUGIN, plugin=manifest.name)


def _is_document(file: Path, skill: RawSkill) -> bool:
    begins = skill.files[SKILL_FILE].removeprefix(b"\xef\xbb\xbf").lstrip()[:3]
    return file.stem.lower() in _DOCUMENTS and begins != b"---"
