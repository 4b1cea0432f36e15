"""`HostPreferences`: the preferences of each owner, one row of storage's settings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pizzabot.host.preferences.fields import NO_LIMIT, complete, valid_fields
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.agent_runtimes import AgentSettings
from pizzabot_hookspecs.storage_backends import SettingStorage
from pizzabot_hookspecs.wire import JsonValue

KEY = "preferences"


class HostPreferences:
    """Implements `pizzabot_hookspecs.host_files.Preferences`. Nothing is kept in memory: what is set counts at once."""

    def __init__(self, storage: SettingStorage) -> None:
        self._storage = storage
        self._patching = asyncio.Lock()

    async def get(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        return complete(await self._storage.setting(KEY, caller=caller))

    async def patch(self, values: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """One patch at a time: of two at once, neither takes back what the other set."""
        async with self._patching:
            changed = complete(await self._storage.setting(KEY, caller=caller)) | valid_fields(values)
            await self._storage.put_setting(KEY, changed, caller=caller)
        return changed

    async def agent_settings(self, caller: Caller) -> AgentSettings:
        """What a turn of the caller's begins with."""
        found = await self.get(caller=caller)
        return AgentSettings(
            persona=str(found["customPromptAddendum"]),
            memories=found["enableMemories"] is True,
            max_tool_calls=_limit(found["maxToolCalls"]),
            max_subagent_tool_calls=_limit(found["maxSubagentToolCalls"]),
        )

    async def memories_enabled(self, caller: Caller) -> bool:
        """Asked before each operation on memories: one row is read."""
        return (await self.get(caller=caller))["enableMemories"] is True


def _limit(value: JsonValue) -> int:
    return value if isinstance(value, int) else NO_LIMIT  # `complete` lets nothing else through
