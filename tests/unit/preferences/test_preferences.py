"""What the person set: a field that cannot be is passed over, and a turn has what counts when it begins."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.host.preferences.fields import MAX_PERSONA, MAX_TOOL_CALLS, PREFERENCES, complete
from pizzabot.testing import host
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller, Offer, hookimpl
from pizzabot_hookspecs.agent_runtimes import AgentSettings

DEFAULTS = {
    "theme": "dark", "customPromptAddendum": "", "enableMemories": False, "enableAutomations": False,
    "maxToolCalls": 100, "maxSubagentToolCalls": 150,
}  # fmt: skip
OTHER = Caller(owner="other")


def on_host(tmp_path, test, use="memory"):
    async def main():
        async with host(settings={"storage": {"use": use}}, data_root=tmp_path) as running:
            await test(running)

    asyncio.run(main())


@pytest.mark.parametrize("use", ["memory", "sqlite"])
def test_a_patch_changes_what_it_names_and_is_kept(tmp_path, use):
    async def test(running):
        preferences = running.preferences
        assert await preferences.get(caller=LOCAL) == DEFAULTS
        changed = {**DEFAULTS, "theme": "light", "maxToolCalls": -1, "enableMemories": True}
        patch = {"theme": "light", "maxToolCalls": -1, "enableMemories": True}
        assert await preferences.patch(patch, caller=LOCAL) == changed
        assert await preferences.patch({}, caller=LOCAL) == changed
        assert await preferences.get(caller=LOCAL) == changed
        assert await preferences.get(caller=OTHER) == DEFAULTS

    on_host(tmp_path, test, use)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("theme", "pink"), ("theme", None), ("theme", ["dark"]), ("customPromptAddendum", "x" * (MAX_PERSONA + 1)),
        ("customPromptAddendum", 1), ("customPromptAddendum", "\ud800"), ("enableMemories", "true"),
        ("enableMemories", 1),
        ("enableAutomations", None), ("maxToolCalls", 0), ("maxToolCalls", -2), ("maxToolCalls", True),
        ("maxToolCalls", 1.5),
        ("maxToolCalls", "5"), ("maxSubagentToolCalls", MAX_TOOL_CALLS + 1), ("unknown", 1),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_is_passed_over_and_the_others_count(tmp_path, name, value):
    async def test(running):
        fine = {"theme": "system"} if name != "theme" else {"maxToolCalls": 7}
        assert await running.preferences.patch({name: value, **fine}, caller=LOCAL) == {**DEFAULTS, **fine}

    on_host(tmp_path, test)


@pytest.mark.parametrize("stored", [None, 7, "text", [], {"theme": 5, "maxToolCalls": 9}, {"unknown": 1}])
def test_what_is_stored_and_cannot_be_read_is_the_default(tmp_path, stored):
    async def test(running):
        await running.storage.put_setting("preferences", stored, caller=LOCAL)
        expected = {**DEFAULTS, "maxToolCalls": 9} if isinstance(stored, dict) and "theme" in stored else DEFAULTS
        assert await running.preferences.get(caller=LOCAL) == expected

    on_host(tmp_path, test)


@settings(max_examples=200)
@given(
    st.dictionaries(
        st.sampled_from([*PREFERENCES, "x"]), st.none() | st.booleans() | st.integers() | st.text() | st.floats()
    )
)
def test_whatever_is_stored_every_preference_holds_what_it_may(stored):
    found = complete(stored)
    assert set(found) == set(PREFERENCES)
    assert all(rule.accepts(found[name]) for name, rule in PREFERENCES.items())


def test_of_patches_at_the_same_time_none_is_lost(tmp_path):
    async def test(running):
        patches = [{"theme": "light"}, {"maxToolCalls": 5}, {"enableMemories": True}, {"customPromptAddendum": "hi"}]
        await asyncio.gather(*(running.preferences.patch(patch, caller=LOCAL) for patch in patches))
        found = await running.preferences.get(caller=LOCAL)
        assert all(found[name] == value for patch in patches for name, value in patch.items())

    on_host(tmp_path, test, "sqlite")


def test_a_turn_begins_with_what_is_set(tmp_path):
    async def test(running):
        assert await running.preferences.agent_settings(LOCAL) == AgentSettings()
        patch = {
            "customPromptAddendum": "be brief",
            "enableMemories": True,
            "maxToolCalls": 3,
            "maxSubagentToolCalls": -1,
        }
        await running.preferences.patch(patch, caller=LOCAL)
        assert await running.preferences.agent_settings(LOCAL) == AgentSettings(
            persona="be brief", memories=True, max_tool_calls=3, max_subagent_tool_calls=-1
        )
        assert await running.preferences.agent_settings(OTHER) == AgentSettings()

    on_host(tmp_path, test)


def test_a_run_is_given_what_its_owner_set(tmp_path):
    runtime = ScriptedRuntime(gates=["word:1"])

    class Plugin:
        @hookimpl
        def pizzabot_agent_runtimes(self):
            return [Offer(name="scripted", summary="for this test", create=lambda _context, _settings: runtime)]

    async def main():
        settings = {"storage": {"use": "memory"}, "runtime": {"use": "scripted"}}
        async with host(plugins=[("scripted", Plugin())], settings=settings, data_root=tmp_path) as running:
            await running.preferences.patch({"customPromptAddendum": "be brief", "maxToolCalls": 3}, caller=LOCAL)
            body = {
                "id": 1,
                "method": "run.start",
                "params": {"input": {"messages": [{"type": "human", "content": "a b"}]}},
            }
            await running.runs.command("t", body, caller=LOCAL)
            await runtime.reached("word:1")
            assert [turn.settings for turn in runtime.turns] == [AgentSettings(persona="be brief", max_tool_calls=3)]
            runtime.release("word:1")

    asyncio.run(main())
