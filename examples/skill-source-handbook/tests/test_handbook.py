"""The handbook keeps the contract of skill sources, and a whole host follows the file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pizzabot_handbook
import pytest
from pizzabot_handbook.source import MAX_BYTES, Handbook, chapters

from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import SkillSourceContract, host
from pizzabot_hookspecs import LOCAL, TooLarge
from pizzabot_hookspecs.skill_sources import SkillSource

TEXT = "# Handbook\n\n## Expenses\n\nHow to claim: receipts first.\n\nThen wait.\n\n## Leave\n\nAsk early.\n"


class TestHandbook(SkillSourceContract):
    @pytest.fixture(autouse=True)
    def file(self, tmp_path: Path) -> None:
        self.path = tmp_path / "handbook.md"
        self.path.write_text(TEXT)

    def source(self) -> Handbook:
        return Handbook(self.path)

    async def change(self, source: SkillSource, turn: int) -> bool:  # noqa: ARG002
        self.path.write_text(f"{TEXT}\n## Chapter {turn}\n\nNew.{'!' * turn}\n")
        return True


def test_the_plugin_is_loaded() -> None:
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "skill-source-handbook")
    assert (report.state, report.reason) == (PluginState.LOADED, None)


def test_a_chapter_without_a_heading_of_its_own_is_told() -> None:
    found = {skill.id: skill.fault for skill in chapters("## A\n\nx\n\n## ???\n\ny\n")}
    assert found == {"a": None, "unnamed": "the chapter '???' needs a heading of its own"}


def test_a_handbook_is_bounded_and_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "large.md").write_bytes(bytes(MAX_BYTES + 1))
    with pytest.raises(TooLarge) as raised:
        asyncio.run(Handbook(tmp_path / "large.md").skills())
    assert raised.value.code == "handbook_too_large"
    assert asyncio.run(Handbook(tmp_path / "gone.md").skills()) == []
    assert asyncio.run(Handbook(None).skills()) == []


def test_a_host_has_the_chapters_as_skills_and_follows_the_file(tmp_path: Path) -> None:
    file = tmp_path / "handbook.md"
    file.write_text(TEXT)

    async def scenario() -> None:
        settings = {"skills": {"handbook": {"file": str(file)}}}
        plugins = [("skill-source-handbook", pizzabot_handbook)]
        async with host(plugins=plugins, settings=settings, data_root=tmp_path / "data") as running:
            skill = await running.skills.get("expenses", caller=LOCAL)
            assert (skill["name"], skill["description"]) == ("Expenses", "How to claim: receipts first.")
            file.write_text(f"{TEXT}\n## Travel\n\nBy train.\n")
            async with asyncio.timeout(20):
                while "travel" not in running.skill_parts.live.catalogue.skills:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    asyncio.run(scenario())
