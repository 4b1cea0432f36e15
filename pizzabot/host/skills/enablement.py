"""Which skills are switched off: an overlay over the catalogue, in the settings of storage (spec/04 §2).

Only what is off is written, under the skill's owner (`user`, `builtin`, `plugin:<name>`) and id, in one value. It says
what the person wants; nothing else ever changes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pizzabot.host.skills.skill import Skill
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import SettingStorage
from pizzabot_hookspecs.wire import JsonValue

SETTING = "skills.disabled"


class Enablement:
    """Read once, written through. The catalogue is the installation's, so the value is its one person's."""

    def __init__(self, storage: SettingStorage) -> None:
        self._storage = storage
        self._writing = asyncio.Lock()
        self._disabled: frozenset[tuple[str, str]] = frozenset()

    async def load(self) -> None:
        """What is not understood counts as nothing written: everything is enabled."""
        stored = await self._storage.setting(SETTING, caller=LOCAL)
        self._disabled = frozenset(_pairs(stored))

    @property
    def disabled(self) -> frozenset[tuple[str, str]]:
        """Pairs of owner key and skill id; a new object whenever it changes."""
        return self._disabled

    def enabled(self, skill: Skill) -> bool:
        return (skill.owner_key, skill.id) not in self._disabled

    async def set(self, owner_key: str, skill_id: str, *, enabled: bool) -> bool:
        """Store it; whether it was enabled before."""
        pair = (owner_key, skill_id)
        async with self._writing:
            was = pair not in self._disabled
            if was != enabled:
                wanted = self._disabled - {pair} if enabled else self._disabled | {pair}
                await self._storage.put_setting(SETTING, _value(wanted), caller=LOCAL)
                self._disabled = wanted
            return was

    async def forget(self, owner_key: str) -> None:
        """Every switch of an owner that is gone."""
        async with self._writing:
            wanted = frozenset(pair for pair in self._disabled if pair[0] != owner_key)
            if wanted != self._disabled:
                await self._storage.put_setting(SETTING, _value(wanted), caller=LOCAL)
                self._disabled = wanted


def _pairs(stored: JsonValue) -> list[tuple[str, str]]:
    if not isinstance(stored, Mapping):
        return []
    return [
        (owner, skill_id)
        for owner, ids in stored.items()
        if isinstance(ids, list)
        for skill_id in ids
        if isinstance(skill_id, str)
    ]


def _value(disabled: frozenset[tuple[str, str]]) -> JsonValue:
    value: dict[str, JsonValue] = {}
    for owner in sorted({owner for owner, _ in disabled}):
        ids: list[JsonValue] = []
        ids.extend(sorted(skill_id for key, skill_id in disabled if key == owner))
        value[owner] = ids
    return value or None
