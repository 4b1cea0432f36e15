"""The skills that ship: each is ready, has a description that routes, and names nothing that is not there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from shipped_rig import IDS, REPOSITORY, SKILLS, code_of, desk, skill_file

from pizzabot.host.skills.exchange import archive_of, bundle_of_archive
from pizzabot.host.skills.skill import Skill, parse_skill
from pizzabot_builtin_plugins.deepagents_runtime.file_backend import MAX_FOUND, MAX_READ_BYTES
from pizzabot_builtin_plugins.deepagents_runtime.interpreter import bounds
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bridges import SIGNATURES, camel
from pizzabot_builtin_plugins.deepagents_runtime.limits import MAX_MODEL_CALLS
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import RUNTIME_TOOLS, AgentSettings
from pizzabot_hookspecs.skill_sources import SKILL_FILE, Origin, RawSkill
from pizzabot_hookspecs.support.skill_folders import SkillFolder

EXPECTED = ["data-analyst", "document-reader", "folder-organiser", "meeting-notes", "pizzabot-guide"]
MAX_BODY = 5_000
"""Characters of instructions: they are in every call of the model."""
PAGE_LINES = 100
"""What `read_file` shows unless it is told otherwise."""
REFERENCES = SKILLS / "pizzabot-guide" / "references"
PAGES = sorted(REFERENCES.glob("*.md"))


def shipped() -> Mapping[str, Skill]:
    return {raw.id: parse_skill(raw, "shipped") for raw in SkillFolder(SKILLS, origin=Origin.BUILTIN).read()}


def test_every_shipped_skill_is_ready_on_a_host_and_there_are_no_problems() -> None:
    async def scenario() -> Mapping[str, Any]:
        async with desk() as at:
            return await at.host.skills.listing(caller=LOCAL)

    told = asyncio.run(scenario())
    assert {skill["id"]: skill["status"] for skill in told["skills"]} == dict.fromkeys(EXPECTED, "ready")
    assert told["problems"] == []
    assert IDS == EXPECTED


@pytest.mark.parametrize("skill", IDS)
def test_a_description_says_what_it_returns_what_to_pass_on_and_what_it_is_not_for(skill: str) -> None:
    description = shipped()[skill].description
    assert 80 <= len(description) <= 600, len(description)
    for words in ("return", "pass on", "not for"):
        assert words in description.lower(), words


@pytest.mark.parametrize("skill", IDS)
def test_a_shipped_skill_is_exported_and_imported_as_it_is(skill: str) -> None:
    known = shipped()[skill]
    assert bundle_of_archive(archive_of(known)) == (skill, {SKILL_FILE: known.skill_file, **known.files})
    assert known.name != skill


@pytest.mark.parametrize("skill", IDS)
def test_a_shipped_skill_names_no_tool_that_it_does_not_have(skill: str) -> None:
    known = shipped()[skill]
    arguments = {"output_mode"}
    words = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", known.body))
    assert words <= RUNTIME_TOOLS - {"task"} | arguments
    assert ("builtin:ask_user" in known.tools) == ("ask_user" in known.body)
    assert ("builtin:eval" in known.tools) == bool(code_of(skill))
    code = known.body + "".join(text.decode() for path, text in known.files.items() if path.endswith(".js"))
    assert set(re.findall(r"\btools\.(\w+)\(", code)) <= {camel(name) for name in SIGNATURES}


@pytest.mark.parametrize("skill", IDS)
def test_the_files_that_a_shipped_skill_names_are_those_that_it_has(skill: str) -> None:
    known = shipped()[skill]
    named = set(re.findall(rf"/skills/{skill}/([\w/.-]+\.\w+)", known.body))
    assert named == set(known.files)


@pytest.mark.parametrize("skill", IDS)
def test_instructions_are_short(skill: str) -> None:
    assert len(shipped()[skill].body) <= MAX_BODY


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_of_the_guide_is_read_with_one_call(page: Any) -> None:
    assert len(page.read_text("utf-8").splitlines()) <= PAGE_LINES


def guide() -> str:
    return "\n".join(page.read_text("utf-8") for page in PAGES)


def sources() -> str:
    rooms = ("pizzabot", "hookspecs", "builtin_plugins")
    return "\n".join(path.read_text("utf-8") for room in rooms for path in (REPOSITORY / room).rglob("*.py"))


def test_every_request_in_the_guide_is_a_route_of_the_server() -> None:
    folder = REPOSITORY / "builtin_plugins" / "pizzabot_builtin_plugins" / "http_server"
    text = "\n".join(path.read_text("utf-8") for path in folder.glob("routes_*.py"))
    routes = {
        (method.upper(), re.sub(r"\{[^}]*\}", "x", path))
        for method, path in re.findall(r'@(get|post|put|patch|delete)\(\s*"([^"]+)"', text)
    }
    asked = set(re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[\w/<>-]+)", guide()))
    for line in re.findall(r"^curl .*", guide(), re.MULTILINE):
        method = re.search(r"-X (\w+)", line) or re.search(r"-F file=@\S+ ()", line)
        path = re.search(r"localhost:8080(/[\w/-]+)", line)
        assert path is not None, line
        asked.add(("GET" if method is None else method[1] or "POST", path[1]))
    for method, path in asked:
        parts = re.sub(r"<\w+>", "x", path).split("/")
        fitting = [route for verb, route in routes if verb == method and _fits(route.split("/"), parts)]
        assert fitting, f"{method} {path}"
    assert len(asked) > 15


def _fits(route: list[str], parts: list[str]) -> bool:
    return len(route) == len(parts) and all(known in ("x", part) for known, part in zip(route, parts, strict=True))


def test_every_error_code_in_the_guide_is_one_of_the_programs() -> None:
    text = sources()
    rows = re.findall(r"^\| (`[^|]*`) \|", (REFERENCES / "troubleshooting.md").read_text("utf-8"), re.MULTILINE)
    codes = {code for row in rows for code in re.findall(r"`(\w+)`", row)}
    assert len(codes) > 15
    assert [code for code in sorted(codes) if f'"{code}"' not in text] == []


def test_the_limits_in_the_guide_are_the_programs() -> None:
    rows = {
        cells[0].strip(): [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", cells[1])]
        for cells in re.findall(
            r"^\| ([^|]+) \| ([^|]+) \|", (REFERENCES / "limits.md").read_text("utf-8"), re.MULTILINE
        )
    }
    settings = AgentSettings()
    assert rows["tool calls of a turn: the assistant"] == [settings.max_tool_calls]
    assert rows["tool calls of a turn: each skill"] == [settings.max_subagent_tool_calls]
    assert rows["model calls of an agent in a turn"] == [MAX_MODEL_CALLS]
    assert rows["a file that is read"][0] * 2**20 == MAX_READ_BYTES
    assert rows["files or lines that one search tells"] == [MAX_FOUND]
    assert rows["one `eval`"] == [
        bounds.EVAL_SECONDS,
        bounds.MEMORY_BYTES // 2**20,
        bounds.MAX_BRIDGED_CALLS,
        bounds.MAX_RESULT_CHARACTERS,
    ]


def test_the_guide_for_authors_lists_the_skills_that_ship() -> None:
    text = (SKILLS / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| \[[\w-]+\]\(([\w-]+)/SKILL\.md\)", text, re.MULTILINE)) == EXPECTED
    page = (REPOSITORY / "docs" / "use" / "skills.md").read_text("utf-8")
    ships = page.partition("## What ships")[2].partition("## ")[0]
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", ships, re.MULTILINE)) == EXPECTED


HEAD = "---\ndescription: d\n"
FAULTY: Mapping[str, tuple[str, str | None]] = {
    "it has no SKILL.md": ("x", None),
    "it has no frontmatter": ("x", "hello"),
    "its frontmatter does not end": ("x", HEAD),
    "it is not YAML": ("x", "---\nname: [a\n---\n"),
    "the key 'description' is there twice": ("x", HEAD + "description: e\n---\n"),
    "it has no `description`": ("x", "---\nname: a\n---\n"),
    "`description` has 1030 characters": ("x", f"---\ndescription: {'d' * 1030}\n---\n"),
    "there is no tool 'builtin:shell'": ("x", HEAD + "tools: builtin:shell\n---\n"),
    "'web_search' is not a tool reference": ("x", HEAD + "tools: [web_search]\n---\n"),
    "'mcp:mail:send' is not among the declared tools": ("x", HEAD + "interruptOn:\n  mcp:mail:send: true\n---\n"),
    "there is no decision 'aprove'": (
        "x", HEAD + "tools: ['mcp:a:b']\ninterruptOn:\n  mcp:a:b:\n    allowedDecisions: [aprove]\n---\n",
    ),
    "the key 'interrupt_on' has to be written 'interruptOn'": ("x", HEAD + "interrupt_on: {}\n---\n"),
    "'my skill' cannot be an id": ("my skill", HEAD + "---\n"),
}  # fmt: skip


@pytest.mark.parametrize("reason", FAULTY)
def test_the_guide_for_authors_quotes_what_the_list_of_problems_says(reason: str) -> None:
    skill_id, text = FAULTY[reason]
    files = {} if text is None else {SKILL_FILE: text.encode()}
    [fault] = parse_skill(RawSkill(id=skill_id, files=files, origin=Origin.USER), "user").faults
    assert reason in fault.reason
    quoted = re.findall(r"^\| `` (.+?) `` \|", (SKILLS / "README.md").read_text("utf-8"), re.MULTILINE)
    [row] = [row for row in quoted if reason in row]
    assert fault.reason.startswith(row.partition(" …")[0].removesuffix(";")), row


def test_the_skill_in_the_guides_can_be_used() -> None:
    for page in (SKILLS / "README.md", REFERENCES / "skills.md"):
        block = re.search(r"```markdown\n(---\n.*?)```", page.read_text("utf-8"), re.DOTALL)
        assert block is not None
        raw = RawSkill(id="recipe-scaler", files={SKILL_FILE: block[1].encode()}, origin=Origin.USER)
        skill = parse_skill(raw, "user")
        assert (skill.faults, bool(skill.description), bool(skill.body)) == ((), True, True)


def test_approvals_in_the_guides_are_understood() -> None:
    for page in (SKILLS / "README.md", REFERENCES / "approvals.md"):
        block = re.search(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        assert block is not None
        text = f"{HEAD}{block[1]}---\n"
        skill = parse_skill(RawSkill(id="x", files={SKILL_FILE: text.encode()}, origin=Origin.USER), "user")
        assert skill.faults == ()
        assert {gate.ref: gate.decisions for gate in skill.gates} == {
            "mcp:mail:send": {"approve", "edit", "reject", "respond"},
            "mcp:mail:draft": {"approve", "reject"},
        }


def test_no_instruction_is_left_as_a_note_to_the_author() -> None:
    assert [skill for skill in IDS if re.search(r"TODO|FIXME|XXX", skill_file(skill))] == []
