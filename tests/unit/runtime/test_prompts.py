"""What the orchestrator is told: sections in their order, the same bytes from turn to turn, the present apart."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from pizzabot.testing.runtime_contract import call, said_text
from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.surroundings import _told, clock_line, folder_line
from pizzabot_hookspecs.agent_runtimes import SubagentSpec, UnreadySkill
from pizzabot_hookspecs.files import GrantedFolder

from .agent_rig import agent, run

CLERK = SubagentSpec(name="clerk", description="keeps {the} books", prompt="You keep books.")


def test_sections_stand_in_their_order_and_the_persons_addendum_is_last() -> None:
    unready = [UnreadySkill(name="mailer", state="loading", detail="its server\nis starting")]
    text = prompts.agent_prompt(specialists=True, memories=True, unready=unready, persona="  Be merry. ")
    places = [
        text.index(part)
        for part in (
            prompts.IDENTITY,
            prompts.CORE_TOOLS,
            prompts.TRUTH,
            prompts.MEMORY,
            prompts.DELEGATION,
            prompts.STYLE,
            "- mailer: loading. its server is starting",
        )
    ]
    assert places == sorted(places)
    assert text.endswith("\n\nBe merry.")


def test_without_anybody_to_delegate_to_nothing_is_said_of_it_and_there_is_no_tool_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, unready=[UnreadySkill(name="mailer", state="loading", detail="wait")]) as one:
            model = ScriptedModel(script=[Reply("hi")])
            await one.say(model)
            system = str(model.calls[0].messages[0].content)
            assert "task" not in model.calls[0].tools
            assert prompts.DELEGATION not in system
            assert "mailer" in system

    run(scenario())


def test_many_who_cannot_be_called_are_counted() -> None:
    unready = [UnreadySkill(name=f"s{number}", state="unavailable", detail="no") for number in range(30)]
    assert "and 10 more" in prompts.agent_prompt(specialists=False, memories=False, unready=unready)


def test_no_planning_and_nothing_of_the_libraries_words_is_in_prompt_or_tools(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, team=[CLERK]) as one:
            model = ScriptedModel(script=[Reply("hi")], provider="openai", model_name="gpt-5.2-codex")
            await one.say(model)
            handed = str(model.calls[0].messages[0].content) + " ".join(model.calls[0].tools)
        assert not re.search("todo|to-do|general-purpose|write_todos", handed, re.IGNORECASE)

    run(scenario())


def test_the_tool_task_lists_the_roster_in_our_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, team=[CLERK]) as one:
            model = ScriptedModel(script=[Reply("hi")])
            await one.say(model)
            task = model.bound["task"]
        assert "- clerk: keeps {the} books" in task.description
        words = task.description + json.dumps(task.args)
        assert not re.search("general-purpose|expected output|full detail|relay a summary", words)
        assert "Do not invent a format" in words

    run(scenario())


def test_a_prefix_is_the_same_bytes_from_turn_to_turn_and_the_present_is_in_no_checkpoint(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, team=[CLERK]) as one:
            one.grant("docs", tmp_path / "docs")
            model = ScriptedModel(script=[Reply("one"), Reply("two"), Reply("three")])
            for text in ("first", "second", "third"):
                await one.say(model, text)
                one.grants.clear()
            heard = [[message.model_dump_json() for message in each.messages] for each in model.calls]
            for earlier, later in itertools.pairwise(heard):
                assert later[: len(earlier) - 1] == earlier[:-1]
            last = [str(each.messages[-1].content) for each in model.calls]
            assert all(text.count("<surroundings>") == 1 for text in last)
            assert str(tmp_path / "docs") in last[0]
            assert str(tmp_path / "docs") not in last[1]
            assert all("surroundings" not in str(message.content) for message in model.calls[2].messages[:-1])
            assert "surroundings" not in str(await one.values())
            assert [said_text(message) for message in model.calls[2].messages][1::2] == ["first", "second", "third"]

    run(scenario())


def test_settings_count_from_the_next_turn_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            model = ScriptedModel(script=[Reply("one"), Reply("two")])
            await one.say(model)
            one.settings = replace(one.settings, persona="Speak like a pirate.", memories=False)
            await one.say(model)
            before, after = (str(each.messages[0].content) for each in model.calls)
        assert prompts.MEMORY in before
        assert prompts.MEMORY not in after
        assert after.endswith("Speak like a pirate.")

    run(scenario())


def test_a_model_without_tools_gets_the_addendum_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.settings = replace(one.settings, persona="Rhyme.")
            model = ScriptedModel(script=[Reply("one")])
            await one.say(model, descriptor={"supports_tools": False})
            assert model.calls[0].messages[0].content == f"{prompts.CONVERSATION}\n\nRhyme."

    run(scenario())


def test_the_clock_is_the_machines_own_to_the_minute() -> None:
    minute = 1_790_000_000 - 1_790_000_000 % 60
    assert clock_line(minute) == clock_line(minute + 59.9) != clock_line(minute + 60)
    assert "2026-09-21T14:13:00Z" in clock_line(minute)


def test_folders_are_data_the_longest_first() -> None:
    folders = [
        GrantedFolder(id="a", host_path="/home/me", path="/local/a", read_only=True),
        GrantedFolder(id="b", host_path='/home/me/"notes"', path="/local/b", read_only=False),
    ]
    listed = json.loads(folder_line(folders).partition("none: ")[2])
    assert [item["virtualPath"] for item in listed] == ["/local/b", "/local/a"]
    assert [item["access"] for item in listed] == ["read-write", "read-only"]
    assert json.loads(folder_line(()).partition("none: ")[2]) == []


@pytest.mark.parametrize("content", ["hello", [{"type": "text", "text": "hello"}]])
def test_the_present_stands_behind_what_was_asked_last_on_a_copy(content: Any) -> None:
    asked = HumanMessage(content, id="u")
    messages: Any = [HumanMessage("before"), asked, AIMessage("hm")]
    told = _told(messages, "now")
    assert told[0] is messages[0]
    assert told[2] is messages[2]
    assert told[1].text.endswith("<surroundings>\nnow\n</surroundings>")
    assert asked.content == content
    assert "now" in str(_told([AIMessage("hm")], "now")[-1].content)


def test_a_report_reaches_the_orchestrator_whole(tmp_path: Path) -> None:
    report = "Invoice 2026-0417: 1.234,56 EUR, due 2026-12-24, IBAN DE02 1203 0000 0000 2020 51\n" * 20

    async def scenario() -> None:
        async with agent(tmp_path, team=[CLERK]) as one:
            task = call("task", "t", description="which invoice is open?", subagent_type="clerk")
            model = ScriptedModel(script=[Reply(tool_calls=[task]), Reply(report), Reply("relayed")])
            await one.say(model)
            assert model.calls[2].messages[-1].text == report.rstrip()
            assert [said_text(message) for message in model.calls[1].messages] == [
                "You keep books.",
                "which invoice is open?",
            ]

    run(scenario())
