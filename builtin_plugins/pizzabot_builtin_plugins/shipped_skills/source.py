"""The source: `pizzabot/skills` of an installed wheel, `skills/` of a checkout (architecture §1). Read once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pizzabot_hookspecs import Context, Unavailable
from pizzabot_hookspecs.skill_sources import Origin, RawSkill
from pizzabot_hookspecs.support.skill_folders import SkillFolder

_HOST = "pizzabot"


class ShippedSkills:
    def __init__(self, folder: Path) -> None:
        self._folder = SkillFolder(folder, origin=Origin.BUILTIN)

    async def skills(self) -> Sequence[RawSkill]:
        return await asyncio.to_thread(self._folder.read)


def shipped_folder() -> Path:
    """In the package or beside it: an editable installation has no copy inside. Raises `Unavailable`."""
    spec = find_spec(_HOST)
    for package in (spec.submodule_search_locations or ()) if spec is not None else ():
        for folder in (Path(package) / "skills", Path(package).parent / "skills"):
            if folder.is_dir():
                return folder
    raise Unavailable("skills_missing", "the skills that come with pizzabot are not there: install it again")


def create(_context: Context, _settings: Any) -> ShippedSkills:
    return ShippedSkills(shipped_folder())
