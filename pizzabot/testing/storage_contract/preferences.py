"""The storage contract, part: settings, and values that are not JSON."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    new_run,
    refused,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, InvalidRequest
from pizzabot_hookspecs.storage_backends import (
    Storage,
)
from pizzabot_hookspecs.wire import JsonValue


class SettingContract(WholeSuite):
    def test_a_setting_is_any_json_value_and_none_deletes_it(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            values: list[JsonValue] = ["dark", 0, 1.5, False, "", [], {}, {"a": [1, None, {"ž": "🫖"}]}]
            assert await storage.setting("key", caller=ANNA) is None
            for value in values:
                await storage.put_setting("key", value, caller=ANNA)
                assert await storage.setting("key", caller=ANNA) == value
            await storage.put_setting("key", None, caller=ANNA)
            assert await storage.setting("key", caller=ANNA) is None
            await storage.put_setting("key", None, caller=ANNA)

        self.play(tmp_path, scenario)

    def test_settings_of_two_owners_are_apart(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.put_setting("theme", "dark", caller=ANNA)
            assert await storage.setting("theme", caller=BORIS) is None
            await storage.put_setting("theme", "light", caller=BORIS)
            await storage.put_setting("theme", None, caller=BORIS)
            assert await storage.setting("theme", caller=ANNA) == "dark"

        self.play(tmp_path, scenario)

    def test_what_is_not_json_is_refused_and_changes_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            no_json: dict[str, JsonValue] = {"broken": object()}  # type: ignore[dict-item]
            await storage.put_setting("key", "before", caller=LOCAL)
            await refused(storage.put_setting("key", no_json, caller=LOCAL), InvalidRequest, "not_json")
            assert await storage.setting("key", caller=LOCAL) == "before"
            await refused(storage.admit_run(new_run("r", input=no_json), caller=LOCAL), InvalidRequest, "not_json")
            assert await storage.thread("t", caller=LOCAL) is None
            await refused(storage.create_thread("t", caller=LOCAL, metadata=no_json), InvalidRequest, "not_json")
            assert await storage.thread("t", caller=LOCAL) is None

        self.play(tmp_path, scenario)
