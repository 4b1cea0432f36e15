"""The built-in sources keep the contract; each faulty source here has one fault, and the check for it fails."""

import asyncio
from pathlib import Path

import pytest

from pizzabot.testing.skill_contract import FIRST, SkillSourceContract
from pizzabot_builtin_plugins.shipped_skills.source import ShippedSkills, shipped_folder
from pizzabot_builtin_plugins.user_skills.source import UserSkills
from pizzabot_hookspecs import Conflict
from pizzabot_hookspecs.skill_sources import Origin, RawSkill


class SilentLog:
    def __getattr__(self, _name):
        return lambda *_args, **_facts: None


class TestShippedSkills(SkillSourceContract):
    def source(self):
        return ShippedSkills(shipped_folder())


class TestUserSkills(SkillSourceContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path):
        self.path = tmp_path / "skills"

    def source(self):
        return UserSkills(self.path, SilentLog())


class Handbook:
    """A source without a fault, in memory."""

    def __init__(self):
        self.kept: dict[str, RawSkill] = {}
        self.changed = asyncio.Event()

    async def skills(self):
        return [RawSkill(id="shipped", files=dict(FIRST)), *self.kept.values()]

    async def put(self, skill_id, files, /, *, new):
        if new and skill_id in self.kept:
            raise Conflict("already_exists", "it is there")
        if any(path.startswith("/") or ".." in path for path in files):
            raise Conflict("already_exists", "it leads out")
        self.kept[skill_id] = RawSkill(id=skill_id, files=dict(files), origin=Origin.USER)
        self.changed.set()

    async def remove(self, skill_id, /):
        return self.kept.pop(skill_id, None) is not None

    async def changes(self):
        while True:
            await self.changed.wait()
            self.changed.clear()
            yield None


class TestHandbook(SkillSourceContract):
    def source(self):
        return Handbook()


class Twice(Handbook):
    async def skills(self):
        return [*await super().skills(), *await super().skills()]


class NoSkillFile(Handbook):
    async def skills(self):
        return [RawSkill(id="a", files={"README.md": b""})]


class Outside(Handbook):
    async def skills(self):
        return [RawSkill(id="a", files={**FIRST, "../a": b""})]


class TextFiles(Handbook):
    async def skills(self):
        return [RawSkill(id="a", files={"SKILL.md": "text"})]


class Unusable(Handbook):
    async def skills(self):
        return [RawSkill(id="a", files={"SKILL.md": b"no frontmatter"})]


class Fickle(Handbook):
    count = 0

    async def skills(self):
        self.count += 1
        return [RawSkill(id=f"a{self.count}", files=dict(FIRST))]


class Merges(Handbook):
    async def put(self, skill_id, files, /, *, new):
        before = self.kept[skill_id].files if skill_id in self.kept else {}
        await super().put(skill_id, {**before, **files}, new=new)


class Overwrites(Handbook):
    async def put(self, skill_id, files, /, *, new):
        await super().put(skill_id, files, new=False)


class Races(Handbook):
    async def put(self, skill_id, files, /, *, new):
        taken = skill_id in self.kept
        await asyncio.sleep(0)
        await super().put(skill_id, files, new=new and taken)


class Forgets(Handbook):
    async def remove(self, skill_id, /):
        return True


class Leaks(Handbook):
    async def put(self, skill_id, files, /, *, new):
        await super().put(skill_id, {path.replace("..", "").lstrip("/"): files[path] for path in files}, new=new)


class Deaf(Handbook):
    async def changes(self):
        await asyncio.Event().wait()
        yield None


class GivesUp(Handbook):
    async def changes(self):
        yield None


FAULTS = [
    (Twice, "test_skills_are_bundles_with_unique_ids"),
    (NoSkillFile, "test_a_bundle_has_a_skill_file_or_a_fault"),
    (Outside, "test_files_are_bytes_under_relative_paths"),
    (TextFiles, "test_files_are_bytes_under_relative_paths"),
    (Unusable, "test_every_skill_can_be_used"),
    (Fickle, "test_asking_again_and_at_the_same_time_gives_the_same"),
    (Merges, "test_a_kept_bundle_is_exactly_what_was_put"),
    (Overwrites, "test_a_new_bundle_takes_no_others_place"),
    (Races, "test_of_several_new_ones_at_once_exactly_one_wins"),
    (Forgets, "test_what_is_removed_is_gone"),
    (Leaks, "test_a_path_that_leads_out_is_not_written"),
    (Deaf, "test_a_watch_tells_a_change_and_ends_when_it_is_closed"),
    (GivesUp, "test_a_watch_tells_a_change_and_ends_when_it_is_closed"),
]


@pytest.mark.parametrize(("faulty", "check"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_the_contract_finds_the_fault(faulty, check, monkeypatch):
    monkeypatch.setattr("pizzabot.testing.skill_contract.CHANGE_SECONDS", 0.2)

    class Suite(SkillSourceContract):
        def source(self):
            return faulty()

    with pytest.raises((AssertionError, TimeoutError)):
        getattr(Suite(), check)()
