"""Which servers a person switched on or off: an overlay over the entries' own `enabled` (spec/04 §2).

`{owner key: {server id: true|false}}` in one value; what is not in it is as its entry says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import SettingStorage
from pizzabot_hookspecs.wire import JsonValue

SETTING = "mcp.enabled"


class ServerEnablement:
    """Read once, written through."""

    def __init__(self, storage: SettingStorage) -> None:
        self._storage = storage
        self._writing = asyncio.Lock()
        self._wishes: Mapping[tuple[str, str], bool] = {}

    async def load(self) -> None:
        """What is not understood counts as nothing written."""
        self._wishes = _read(await self._storage.setting(SETTING, caller=LOCAL))

    def wish(self, owner_key: str, server_id: str) -> bool | None:
        return self._wishes.get((owner_key, server_id))

    async def set(self, owner_key: str, server_id: str, enabled: bool | None) -> None:  # noqa: FBT001 - the last word of a sentence
        """Store it; None forgets the wish."""
        async with self._writing:
            wishes = dict(self._wishes)
            wishes.pop((owner_key, server_id), None)
            if enabled is not None:
                wishes[owner_key, server_id] = enabled
            if wishes != self._wishes:
                await self._storage.put_setting(SETTING, _value(wishes), caller=LOCAL)
                self._wishes = wishes

    async def forget(self, owner_key: str) -> None:
        """Every wish about the servers of an owner that is gone."""
        async with self._writing:
            wishes = {key: enabled for key, enabled in self._wishes.items() if key[0] != owner_key}
            if wishes != self._wishes:
                await self._storage.put_setting(SETTING, _value(wishes), caller=LOCAL)
                self._wishes = wishes


def _read(stored: JsonValue) -> dict[tuple[str, str], bool]:
    if not isinstance(stored, Mapping):
        return {}
    return {
        (owner, server_id): enabled
        for owner, servers in stored.items()
        if isinstance(servers, Mapping)
        for server_id, enabled in servers.items()
        if isinstance(enabled, bool)
    }


def _value(wishes: Mapping[tuple[str, str], bool]) -> JsonValue:
    value: dict[str, JsonValue] = {}
    for owner in sorted({owner for owner, _ in wishes}):
        value[owner] = {server_id: enabled for (key, server_id), enabled in sorted(wishes.items()) if key == owner}
    return value or None
