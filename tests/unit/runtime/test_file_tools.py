"""The six file tools on a turn's files: one tree of areas, each with its rules, nothing of it in the state."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from pizzabot.testing.runtime_contract import call
from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.file_backend import as_told, relative_pattern, routed_pattern
from pizzabot_builtin_plugins.deepagents_runtime.file_paths import decoded, encoded
from pizzabot_hookspecs.agent_runtimes import RUNTIME_TOOLS, BuiltinTool, SubagentSpec

from .agent_rig import agent, run

NAMES = (
    "naïve résumé.txt",
    "日本語 メモ.md",
    "привет.txt",
    "a%41b.txt",
    "100%.txt",
    "[...slug].tsx",
    "a..b.txt",
    "ﬁle.txt",
)


def test_the_orchestrator_has_exactly_the_six_file_tools_and_no_way_to_run_or_delete(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            model = ScriptedModel(script=[Reply("hi")])
            await one.say(model)
            assert set(model.calls[0].tools) == RUNTIME_TOOLS - {"task"}

    run(scenario())


def test_a_file_is_written_read_edited_listed_and_found_and_is_in_no_state(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            results = await one.do(
                call("write_file", "w", file_path="/notes/plan.md", content="buy flour\nbuy salt\n"),
                call("read_file", "r", file_path="/notes/plan.md"),
                call("edit_file", "e", file_path="/notes/plan.md", old_string="salt", new_string="sugar"),
                call("ls", "l", path="/"),
                call("glob", "g", pattern="*.md"),
                call("grep", "s", pattern="sugar", output_mode="content"),
            )
            values = await one.values()
        assert all(status == "success" for status, _ in results.values()), results
        assert "buy flour\nbuy salt" in results["r"][1]
        assert (tmp_path / "workspace/notes/plan.md").read_text() == "buy flour\nbuy sugar\n"
        for folder in ("/notes/", "/memories/", "/local/"):
            assert folder in results["l"][1]
        assert "/notes/plan.md" in results["g"][1]
        assert "/notes/plan.md" in results["s"][1]
        assert "2: buy sugar" in results["s"][1]
        assert set(values) == {"messages"}

    run(scenario())


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_any_script_survives_the_way_to_the_model_and_back(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.grant("docs", tmp_path / "docs", read_only=False)
            (tmp_path / "docs" / name).write_text("first line")
            told = "/local/docs/" + encoded(name)
            assert told.isascii()
            results = await one.do(
                call("ls", "l", path="/local/docs"),
                call("read_file", "r", file_path=told),
                call("edit_file", "e", file_path=told, old_string="first", new_string="second"),
                call("glob", "g", pattern="*", path="/local/docs"),
                call("read_file", "plain", file_path="/local/docs/" + name),
                call("write_file", "w", file_path="/" + name, content="in the workspace"),
                call("read_file", "own", file_path="/" + name),
            )
        assert told in results["l"][1]
        assert told in results["g"][1]
        assert "first line" in results["r"][1]
        assert told in results["e"][1]
        assert (tmp_path / "docs" / name).read_text() == "second line"
        assert "second line" in results["plain"][1]
        assert "in the workspace" in results["own"][1]
        assert (tmp_path / "workspace" / name).exists()

    run(scenario())


def test_a_path_whose_letters_a_model_composed_anew_is_read_and_never_written(tmp_path: Path) -> None:
    name = unicodedata.normalize("NFD", "é.txt")

    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.grant("docs", tmp_path / "docs", read_only=False)
            (tmp_path / "docs" / name).write_text("found")
            composed = "/local/docs/" + unicodedata.normalize("NFC", name)
            results = await one.do(
                call("read_file", "r", file_path=composed),
                call("write_file", "w", file_path=composed, content="another one"),
            )
        assert "found" in results["r"][1]
        assert (tmp_path / "docs" / name).read_text() == "found"

    run(scenario())


@pytest.mark.parametrize("text", ["%2e%2e/secret", "%2E%2E", "a%2fb", "%00", "%ff", "100%", "%zz"])
def test_escapes_that_are_none_or_name_nothing_stay_as_they_are_written(text: str) -> None:
    assert decoded(text) == text


@pytest.mark.parametrize("name", NAMES)
def test_what_is_told_is_decoded_to_what_it_was(name: str) -> None:
    assert decoded(encoded(name)) == name


def test_a_folder_that_may_only_be_read_refuses_and_no_refusal_shows_where_it_lies(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("SECRET")

    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.grant("docs", tmp_path / "docs")
            (tmp_path / "docs" / "link.txt").symlink_to(outside / "secret.txt")
            (tmp_path / "docs" / "way").symlink_to(outside)
            results = await one.do(
                call("write_file", "w", file_path="/local/docs/new.txt", content="x"),
                call("read_file", "link", file_path="/local/docs/link.txt"),
                call("read_file", "way", file_path="/local/docs/way/secret.txt"),
                call("read_file", "up", file_path="/local/docs/%2e%2e/outside/secret.txt"),
                call("read_file", "none", file_path="/local/other/x.txt"),
                call("ls", "lost", path="/local/docs/nothing"),
                call("grep", "s", pattern="SECRET"),
            )
        assert [results[key][0] for key in ("w", "link", "way", "up", "none", "lost")] == ["error"] * 6
        assert "only be read" in results["w"][1]
        assert not any("SECRET" in text and "No matches" not in text for _, text in results.values())
        assert not any(str(tmp_path) in text for _, text in results.values())
        assert not (tmp_path / "docs" / "new.txt").exists()

    run(scenario())


def test_a_folder_taken_away_and_memory_switched_off_refuse_the_next_operation_of_the_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.grant("docs", tmp_path / "docs")
            (tmp_path / "docs" / "a.txt").write_text("read me")
            steps = iter(
                [
                    [call("read_file", "before", file_path="/local/docs/a.txt")],
                    [call("write_file", "note", file_path="/memories/a.md", content="kept")],
                    [call("read_file", "after", file_path="/local/docs/a.txt")],
                    [call("read_file", "memory", file_path="/memories/a.md")],
                    [call("ls", "listed", path="/memories")],
                ]
            )

            def script(messages: Any) -> Reply:
                if "after" not in str(messages[-1].content) and len(messages) > 5:
                    one.grants.clear()
                    one.memory_on = False
                step = next(steps, None)
                return Reply("done") if step is None else Reply(tool_calls=step)

            await one.say(ScriptedModel(script=script))
            results = await one.results()
        assert results["before"][0] == results["note"][0] == "success"
        assert results["after"][0] == results["memory"][0] == results["listed"][0] == "error"
        assert "granted" in results["after"][1]
        assert "disabled" in results["memory"][1]
        assert "disabled" in results["listed"][1]

    run(scenario())


def test_a_subagent_reads_its_own_bundle_and_no_other_and_changes_nothing_of_it(tmp_path: Path) -> None:
    clerk = SubagentSpec(
        name="clerk", description="keeps books", prompt="You keep books.", files={"references/rules.md": b"rule one"}
    )
    cook = SubagentSpec(name="cook", description="cooks", prompt="You cook.", files={"secret.md": b"recipe"})
    steps = [
        Reply(tool_calls=[call("task", "t", description="check", subagent_type="clerk")]),
        Reply(tool_calls=[call("ls", "l", path="/skills/clerk")]),
        Reply(tool_calls=[call("read_file", "r", file_path="/skills/clerk/references/rules.md")]),
        Reply(tool_calls=[call("grep", "g", pattern="rule one")]),
        Reply(tool_calls=[call("glob", "find", pattern="*.md")]),
        Reply(tool_calls=[call("read_file", "other", file_path="/skills/cook/secret.md")]),
        Reply(tool_calls=[call("write_file", "w", file_path="/skills/clerk/new.md", content="x")]),
        Reply(
            tool_calls=[
                call("edit_file", "e", file_path="/skills/clerk/references/rules.md", old_string="one", new_string="2")
            ]
        ),
        Reply("the report"),
        Reply("relayed"),
    ]

    async def scenario() -> None:
        async with agent(tmp_path, team=[clerk, cook]) as one:
            model = ScriptedModel(script=steps)
            await one.say(model)
            heard = {
                message.tool_call_id: (message.status, message.text)
                for message in model.calls[8].messages
                if message.type == "tool"
            }
        assert "/skills/clerk/references/" in heard["l"][1]
        assert "rule one" in heard["r"][1]
        assert "/skills/clerk/references/rules.md" in heard["g"][1]
        assert "/skills/clerk/references/rules.md" in heard["find"][1]
        assert heard["other"][0] == "error"
        assert "recipe" not in heard["other"][1]
        assert heard["w"][0] == heard["e"][0] == "error"
        assert "read-only" in heard["w"][1]
        assert set(model.calls[1].tools) == {"ls", "read_file", "write_file", "edit_file", "glob", "grep"}

    run(scenario())


def test_two_writes_of_one_file_in_one_step_tell_the_person_what_the_model_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            both = [call("write_file", name, file_path="/a.md", content=name) for name in ("one", "two")]
            frames = await one.say(ScriptedModel(script=[Reply(tool_calls=both), Reply("done")]))
            results = await one.results()
            told = {
                frame.data["tool_call_id"]: frame.data.get("message")
                for frame in frames
                if frame.method == "tools" and frame.data["event"] == "tool-error"
            }
            assert told
            assert told == {name: text for name, (status, text) in results.items() if status == "error"}

    run(scenario())


def test_the_assistant_itself_writes_nothing_where_skills_have_their_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            made = [
                call("write_file", "below", file_path="/skills/clerk/x.md", content="x"),
                call("write_file", "at", file_path="/skills", content="x"),
                call("write_file", "beside", file_path="/skillset", content="x"),
            ]
            await one.say(ScriptedModel(script=[Reply(tool_calls=made), Reply("done")]))
            results = await one.results()
            assert [results[name][0] for name in ("below", "at", "beside")] == ["error", "error", "success"]

    run(scenario())


@pytest.mark.parametrize(
    ("path", "detail", "told"),
    [
        ("/local/proc", "'/proc': permission denied", "'/local/proc': permission denied"),
        ("/local/d/x", "the path '/d/x%2F' has a part", "the path '/local/d/x%2F' has a part"),
        ("/local/d/x", """cannot do "/d/it's": no""", """cannot do "/local/d/it's": no"""),
        ("/local/local/x", "'/local/x': permission denied", "'/local/local/x': permission denied"),
        ("/memories/a.md", "'/a.md' is too large", "'/memories/a.md' is too large"),
        ("/x", "'/x': permission denied", "'/x': permission denied"),
    ],
)
def test_what_an_area_says_of_a_path_names_it_as_the_agent_knows_it(path: str, detail: str, told: str) -> None:
    assert as_told(path, detail) == told


def test_a_skill_has_the_sandbox_and_questions_only_where_it_declares_them(tmp_path: Path) -> None:
    team = [
        SubagentSpec(name="analyst", description="d", prompt="p", builtins=frozenset({BuiltinTool.EVAL})),
        SubagentSpec(name="asker", description="d", prompt="p", builtins=frozenset({BuiltinTool.ASK_USER})),
    ]

    async def scenario() -> None:
        async with agent(tmp_path, team=team) as one:
            for name, tool in (("analyst", "eval"), ("asker", "ask_user")):
                task = call("task", f"t-{name}", description="do", subagent_type=name)
                model = ScriptedModel(script=[Reply(tool_calls=[task]), Reply("report"), Reply("relayed")])
                await one.say(model)
                assert {"eval", "ask_user", "task"} & set(model.calls[1].tools) == {tool}

    run(scenario())


def test_a_result_that_is_too_long_for_the_conversation_is_a_file_that_can_be_paged(tmp_path: Path) -> None:
    from langchain_core.tools import tool

    from pizzabot_hookspecs.agent_tools import AgentTool

    @tool
    def lots() -> str:
        """Gives a lot."""
        return "".join(f"line {number} of many\n" for number in range(20_000))

    async def scenario() -> None:
        async with agent(tmp_path, tools=[AgentTool(tool=lots, repeatable=True)]) as one:
            results = await one.do(
                call("lots", "big"),
                call("read_file", "page", file_path="/large_tool_results/big", offset=12_344, limit=2),
            )
        assert len(results["big"][1]) < 20_000
        assert "/large_tool_results/big" in results["big"][1]
        assert "line 12344 of many" in results["page"][1]
        assert list((tmp_path / "offloads").rglob("*big*"))

    run(scenario())


def test_what_is_no_text_is_named_and_images_reach_only_a_model_that_sees_without_staying_in_the_checkpoint(
    tmp_path: Path,
) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\x00" * 64

    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.grant("docs", tmp_path / "docs")
            (tmp_path / "docs" / "bill.pdf").write_bytes(b"%PDF-1.7 \xff\xfe")
            (tmp_path / "docs" / "raw.txt").write_bytes(b"\xff\xfe\x00")
            (tmp_path / "docs" / "cat.png").write_bytes(png)
            results = await one.do(
                call("read_file", "pdf", file_path="/local/docs/bill.pdf"),
                call("read_file", "raw", file_path="/local/docs/raw.txt"),
                call("read_file", "blind", file_path="/local/docs/cat.png"),
            )
            assert [status for status, _ in results.values()] == ["error"] * 3
            assert "image/png" in results["blind"][1]
            seeing = ScriptedModel(
                script=[Reply(tool_calls=[call("read_file", "seen", file_path="/local/docs/cat.png")]), Reply("a cat")]
            )
            await one.say(seeing, descriptor={"supports_vision": True})
            shown = [block for m in seeing.calls[1].messages for block in m.content if isinstance(block, dict)]
            assert any(block.get("base64") for block in shown)
            assert "iVBORw0KGgo" not in str(await one.values())

    run(scenario())


def test_what_was_summed_up_is_put_aside_and_can_be_read_where_the_summary_says(tmp_path: Path) -> None:
    def script(heard: Any) -> Reply:
        if len(heard) == 1:
            return Reply("They talked about pizza.")
        asked = str(heard[-1].content)
        if "where is it" in asked and heard[-1].type == "human":
            told = " ".join(message.text for message in heard)
            path = re.findall(r"/conversation_history/[\w-]+\.md", told)[0]
            return Reply(
                tool_calls=[
                    call("grep", "g", pattern="question 0", path=path, output_mode="content"),
                    call("ls", "all", path="/conversation_history"),
                    call("grep", "in all", pattern="question 0", path="/conversation_history"),
                    call("glob", "found", pattern="*.md", path="/conversation_history"),
                ]
            )
        return Reply("noted")

    async def scenario() -> None:
        async with agent(tmp_path) as one:
            model = ScriptedModel(script=script)
            for number in range(7):
                await one.say(model, f"question {number} " + "word " * 900, descriptor={"context_window": 6000})
            await one.say(model, "where is it?", descriptor={"context_window": 6000})
            results = await one.results()
        assert "question 0" in results["g"][1]
        assert all("/conversation_history/" in results[name][1] for name in ("all", "in all", "found")), results
        assert list((tmp_path / "offloads" / "conversation_history").glob("*.md"))

    run(scenario())


def test_globs_are_relative_to_where_they_search_and_go_to_the_area_they_name() -> None:
    assert relative_pattern("*.md") == "**/*.md"
    assert relative_pattern("/*.md") == "*.md"
    assert relative_pattern("a/**/*.md") == "a/**/*.md"
    assert routed_pattern("/local/docs/**/*.md", "/local") == "docs/**/*.md"
    assert routed_pattern("*.md", "/local") == "**/*.md"
    assert routed_pattern("/notes/*.md", "/local") is None
    assert routed_pattern("/notes/*.md", "") == "notes/*.md"
