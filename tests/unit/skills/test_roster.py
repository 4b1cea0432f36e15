"""Readiness and the roster: who can be called, with which tools, under which names, after asking for what."""

import re

import pytest
from mcp_doubles import connected, tool

from pizzabot.host.skills.readiness import SkillStatus, readiness
from pizzabot.host.skills.roster import MAX_UNREADY, RosterBuilder, tool_name
from pizzabot.host.skills.servers import PENDING, ServerState, ServerStatus
from pizzabot.host.skills.skill import parse_skill
from pizzabot_hookspecs.agent_runtimes import BuiltinTool
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool
from pizzabot_hookspecs.skill_sources import Origin, RawSkill


def skill(frontmatter="", skill_id="s", body="body", **files):
    content = f"---\ndescription: d\n{frontmatter}\n---\n{body}".encode()
    found = {"SKILL.md": content, **{name.replace("_", "."): text for name, text in files.items()}}
    return parse_skill(RawSkill(id=skill_id, files=found, origin=Origin.USER), "test")


def state(status, detail=""):
    return ServerState(status=status, detail=detail)


def build(*skills, states=None, trusted=(), enabled=lambda _: True, own=(), builder=None):
    builder = builder or RosterBuilder()
    return builder.build(skills, states or {}, enabled=enabled, trusted=trusted.__contains__, own=own)


def test_nothing_declared_is_ready_at_once():
    assert readiness(skill(), {}).status is SkillStatus.READY


@pytest.mark.parametrize("status", list(ServerStatus))
def test_a_servers_state_counts_as_the_table_says(status):
    given = connected("b") if status is ServerStatus.CONNECTED else state(status, "because")
    found = readiness(skill("tools: mcp:a:b"), {"a": given})
    if status is ServerStatus.CONNECTED:
        assert found.status is SkillStatus.READY
        return
    assert found.status is (SkillStatus.LOADING if status in PENDING else SkillStatus.UNAVAILABLE)
    assert found.detail == f"server 'a' is {status.value}: because"


def test_unavailable_beats_loading_wherever_it_stands():
    loading = {"a": state(ServerStatus.LOADING)}
    for tools in ("mcp:a:b mcp:gone:x", "mcp:gone:x mcp:a:b"):
        found = readiness(skill(f"tools: {tools}"), loading)
        assert (found.status, "not configured" in found.detail) == (SkillStatus.UNAVAILABLE, True)


def test_a_wildcard_without_a_match_and_an_unknown_tool_are_unavailable():
    states = {"a": connected("read_x", "write_x")}
    assert "matched no tools" in readiness(skill("tools: ['mcp:a:zap*']"), states).detail
    assert "has no tool 'zap'" in readiness(skill("tools: mcp:a:zap"), states).detail


def test_wildcards_expand_in_the_servers_order_each_tool_once():
    states = {"a": connected("z", "read_b", "read_a")}
    found = readiness(skill("tools: ['mcp:a:read*', 'mcp:a:read_a', 'mcp:a:*']"), states)
    assert found.tools == (("a", "read_b"), ("a", "read_a"), ("a", "z"))


def test_a_gate_that_matches_no_tool_is_unavailable_with_its_line():
    found = readiness(skill("tools: ['mcp:a:*']\ninterruptOn:\n  mcp:a:sendd: true"), {"a": connected("send")})
    assert (found.status, "line 5" in found.detail) == (SkillStatus.UNAVAILABLE, True)


def test_a_ready_skill_is_a_subagent_with_its_tools_builtins_and_files():
    one = skill("tools: [mcp:a:read, builtin:ask_user]", z_md=b"z", ref_md=b"x")
    made = build(one, states={"a": connected("read")}).roster
    (subagent,) = made.subagents
    assert (subagent.name, subagent.description, subagent.prompt) == ("s", "d", "body")
    assert subagent.builtins == {BuiltinTool.ASK_USER}
    assert list(subagent.files.items()) == [("SKILL.md", one.skill_file), ("ref.md", b"x"), ("z.md", b"z")]
    (handed,) = subagent.tools
    assert (handed.tool.name, handed.approval, handed.repeatable) == ("a__read", None, False)
    assert handed.tool.invoke({"text": "hi"}) == "hi"


def test_approvals_come_from_the_entry_that_says_it_most_exactly():
    frontmatter = (
        "tools: ['mcp:a:*']\ninterruptOn:\n  mcp:a:*: true\n  mcp:a:read*: false\n"
        "  mcp:a:read_secret: {allowedDecisions: [approve, reject]}"
    )
    made = build(skill(frontmatter), states={"a": connected("send", "read_mail", "read_secret")}).roster
    approvals = {handed.tool.name: handed.approval for handed in made.subagents[0].tools}
    assert approvals == {
        "a__send": DECISIONS,
        "a__read_mail": None,
        "a__read_secret": frozenset({"approve", "reject"}),
    }


def test_hints_count_only_of_servers_that_are_trusted():
    for hints in ({"reads_only": True}, {"idempotent": True}):
        states = {"a": connected("read", **hints)}
        assert not build(skill("tools: mcp:a:read"), states=states).roster.subagents[0].tools[0].repeatable
        assert build(skill("tools: mcp:a:read"), states=states, trusted=("a",)).roster.subagents[0].tools[0].repeatable
    assert (
        not build(skill("tools: mcp:a:read"), states={"a": connected("read")}, trusted=("a",))
        .roster.subagents[0]
        .tools[0]
        .repeatable
    )


def test_those_that_are_not_ready_are_told_of_and_disabled_ones_are_not():
    states = {"a": state(ServerStatus.LOADING, "2 of 3")}
    made = build(
        skill("tools: mcp:a:b", "waits"), skill("tools: mcp:z:b", "broken"), skill("", "off"),
        states=states, enabled=lambda one: one.id != "off",
    )  # fmt: skip
    assert [(one.name, one.state) for one in made.roster.unready] == [("waits", "loading"), ("broken", "unavailable")]
    assert made.roster.subagents == ()
    assert made.readiness["off"].status is SkillStatus.DISABLED


def test_those_that_are_told_of_are_bounded():
    made = build(*(skill("tools: mcp:z:b", f"s{place}") for place in range(MAX_UNREADY + 5)))
    assert len(made.roster.unready) == MAX_UNREADY
    assert len(made.readiness) == MAX_UNREADY + 5


def test_a_skill_with_more_tools_than_fit_is_unavailable():
    states = {"a": connected(*(f"t{place}" for place in range(257)))}
    assert "257" in build(skill("tools: ['mcp:a:*']"), states=states).readiness["s"].detail


def test_the_fingerprint_changes_with_everything_that_a_turn_sees_and_with_nothing_else():
    builder, states = RosterBuilder(), {"a": connected("read")}

    def print_of(*skills, **more):
        return build(*skills, builder=builder, **{"states": states, **more}).roster.fingerprint

    one = skill("tools: mcp:a:read")
    before = print_of(one)
    assert print_of(skill("tools: mcp:a:read")) == before
    assert print_of(one, states={**states, "other": state(ServerStatus.ERROR)}) == before
    others = [
        print_of(skill("tools: mcp:a:read", body="other")),
        print_of(skill("tools: mcp:a:read\ninterruptOn: {mcp:a:read: true}")),
        print_of(skill("tools: mcp:a:read", x_md=b"x")),
        print_of(one, skill("", "two")),
        print_of(one, states={"a": connected("read")}),
        print_of(one, own=(AgentTool(tool=tool("own").tool),)),
        print_of(one, enabled=lambda _: False),
        print_of(one, states={"a": state(ServerStatus.CRASHED)}),
    ]
    assert len({before, *others}) == len(others) + 1


def test_the_same_connection_gives_the_same_tool_object_again():
    builder, states = RosterBuilder(), {"a": connected("read")}
    first = build(skill("tools: mcp:a:read"), states=states, builder=builder).roster.subagents[0].tools[0].tool
    assert build(skill("tools: mcp:a:read"), states=states, builder=builder).roster.subagents[0].tools[0].tool is first
    assert states["a"].tools["read"].tool.name == "read"


def test_an_empty_description_of_a_tool_becomes_its_name():
    states = {"a": connected("read", description=" ")}
    assert build(skill("tools: mcp:a:read"), states=states).roster.subagents[0].tools[0].tool.description == "read"


def test_tool_names_fit_every_provider_and_no_two_tools_share_one():
    pairs = [
        ("a", "b"), ("a__b", "c"), ("a", "b__c"), ("a_", "b"), ("a", "_b"), ("a" * 40, "b" * 40), ("a" * 40, "b" * 41),
        ("s", "do.it"), ("s", "do/it"), ("s", "ü"), ("s.x", "t"), ("s-x", "t"),
    ]  # fmt: skip
    names = [tool_name(*pair) for pair in pairs]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert (tool_name("a", "b"), tool_name("mail", "send_it")) == ("a__b", "mail__send_it")
    assert names == [tool_name(*pair) for pair in pairs]
