"""An installed pizzabot has the skills that ship, whole."""

from __future__ import annotations

import json

from environments import REPOSITORY, run

SAY = """\
import json
from pizzabot_builtin_plugins.shipped_skills.source import shipped_folder
from pizzabot_hookspecs.skill_sources import Origin
from pizzabot_hookspecs.support.skill_folders import SkillFolder

folder = shipped_folder()
skills = SkillFolder(folder, origin=Origin.BUILTIN).read()
print(json.dumps({"folder": str(folder), "skills": {skill.id: sorted(skill.files) for skill in skills}}))
"""


def test_an_installed_wheel_finds_every_skill_with_its_files_inside_of_the_package(plain):
    told = json.loads(run(plain.python, "-c", SAY, cwd=plain.folder))
    assert told["folder"] == str(plain.packages / "pizzabot" / "skills")
    skills = [path.parent for path in (REPOSITORY / "skills").glob("*/SKILL.md")]
    assert len(skills) >= 5
    assert told["skills"] == {
        skill.name: sorted(str(path.relative_to(skill)) for path in skill.rglob("*") if path.is_file())
        for skill in skills
    }
