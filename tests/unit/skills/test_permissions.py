"""What a skill may use and must ask for; whatever cannot be understood to the letter makes it unavailable (25b)."""

import pytest

from pizzabot.host.skills.refs import InvalidRefError, parse_ref, servers_of
from pizzabot.host.skills.skill import parse_skill
from pizzabot_hookspecs.agent_tools import DECISIONS
from pizzabot_hookspecs.skill_sources import Origin, RawSkill


def parsed(frontmatter):
    content = f"---\ndescription: d\n{frontmatter}\n---\nbody".encode()
    return parse_skill(RawSkill(id="s", files={"SKILL.md": content}, origin=Origin.USER), "test")


@pytest.mark.parametrize(
    "written",
    [
        "tools: [mcp:a:b, builtin:eval, mcp:a:b]",
        "tools: mcp:a:b, builtin:eval mcp:a:b",
        "tools:\n  - mcp:a:b\n  - 'builtin:eval'",
        "mcp: mcp:a:b builtin:eval",
        "mcp: mcp:x:y\ntools: [mcp:a:b, builtin:eval]",
    ],
)
def test_tools_are_a_list_or_a_text_each_once_and_win_over_mcp(written):
    skill = parsed(written)
    assert (skill.fault, skill.tools) == (None, ("mcp:a:b", "builtin:eval"))


def test_other_types_are_ignored_and_told():
    skill = parsed("tools: [mcp:a:b, [mcp:c:d], {e: f}]")
    assert (skill.fault, skill.tools, len(skill.faults)) == (None, ("mcp:a:b",), 2)
    assert (parsed("tools: {a: b}").tools, len(parsed("tools: {a: b}").faults)) == ((), 1)


@pytest.mark.parametrize(
    "ref", ["mcp:a", "mcp:a:", "mcp::b", "mcp:a:b:c", "mcp:a:*b", "mcp:a*:b", "builtin:shell", "eval", "123"]
)
def test_a_misspelt_tool_makes_the_skill_unavailable_with_its_line(ref):
    fault = parsed(f"tools:\n  - mcp:a:b\n  - '{ref}'").fault
    assert fault is not None
    assert (fault.line, ref in fault.reason) == (5, True)


@pytest.mark.parametrize(
    ("config", "line", "says"),
    [
        ("mcp:a:b: {allowedDecisions: [aprove]}", 5, "aprove"),
        ("mcp:a:b: {allowedDecisions: []}", 5, "at least one"),
        ("mcp:a:b: {allowedDecisions: approve}", 5, "list"),
        ("mcp:a:b: {allowed_decisions: [approve]}", 5, "allowedDecisions"),
        ("mcp:a:b: {}", 5, "allowedDecisions"),
        ("mcp:a:b: 'true'", 5, "true, false"),
        ("mcp:a:b: yes", 5, "true, false"),
        ("mcp:a:b:", 5, "true, false"),
        ("mcp:a:b: [approve]", 5, "true, false"),
        ("mcp:a:c: true", 5, "not among"),
        ("mcp:z:b: true", 5, "not among"),
        ("mcp:a: true", 5, "not a tool reference"),
        ("builtin:eval: true", 5, "not a tool reference"),
    ],
)
def test_a_gate_that_is_not_understood_makes_the_skill_unavailable(config, line, says):
    fault = parsed(f"tools: [mcp:a:b]\ninterruptOn:\n  {config}").fault
    assert fault is not None
    assert (fault.line, says in fault.reason) == (line, True)


@pytest.mark.parametrize("written", ["interruptOn: true", "interruptOn: [mcp:a:b]", "interruptOn:", "interruptOn: ~"])
def test_gates_that_are_no_mapping_make_the_skill_unavailable(written):
    assert parsed(f"tools: [mcp:a:b]\n{written}").fault is not None


@pytest.mark.parametrize(
    "key", ["interrupton", "interrupt_on", "interrupt-on", "InterruptOn", "interrupts", "interrupt"]
)
def test_a_misspelt_key_of_gates_is_a_fault_not_their_absence(key):
    fault = parsed(f"tools: [mcp:a:b]\n{key}:\n  mcp:a:b: true").fault
    assert fault is not None
    assert (fault.line, "interruptOn" in fault.reason) == (4, True)


def test_gates_are_read_with_their_decisions():
    skill = parsed(
        "tools: ['mcp:a:*']\ninterruptOn:\n  mcp:a:b: true\n  mcp:a:*: {allowedDecisions: [reject]}\n  mcp:a:c: false"
    )
    assert skill.fault is None
    assert {gate.ref: gate.decisions for gate in skill.gates} == {
        "mcp:a:b": DECISIONS,
        "mcp:a:*": frozenset({"reject"}),
        "mcp:a:c": None,
    }


def test_references_cover_each_other_by_server_and_prefix():
    one, all_, some = parse_ref("mcp:a:read_x"), parse_ref("mcp:a:*"), parse_ref("mcp:a:read*")
    assert all_.covers(some)
    assert some.covers(one)
    assert not some.covers(all_)
    assert not one.covers(some)
    assert not parse_ref("mcp:b:*").covers(one)
    assert servers_of(["mcp:b:x", "builtin:eval", "mcp:a:*", "mcp:b:y", "nonsense"]) == ("b", "a")


def test_a_reference_is_bounded():
    with pytest.raises(InvalidRefError, match="longer"):
        parse_ref("mcp:a:" + "b" * 300)
