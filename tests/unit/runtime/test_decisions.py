"""Decisions and the rules of tools, as values: nothing here needs a graph."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool

from pizzabot_builtin_plugins.deepagents_runtime.decisions import decision_of
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import approval_fault, tool_set
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.agent_runtimes import Roster, SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool


def value(*allowed: str) -> dict[str, Any]:
    return {
        "action_requests": [{"name": "send", "args": {}}],
        "review_configs": [{"action_name": "send", "allowed_decisions": list(allowed)}],
    }


def test_a_decision_is_reduced_to_what_it_decides() -> None:
    given = {"type": "approve", "note": "fine", "message": "hello"}
    assert decision_of("i1", {"decisions": [given], "more": 1}, value("approve")) == {"type": "approve"}
    edit = {"type": "edit", "editedAction": {}, "edited_action": {"name": "send", "args": {"to": "x"}, "id": 1}}
    assert decision_of("i1", {"decisions": [edit]}, value("edit")) == {
        "type": "edit",
        "edited_action": {"name": "send", "args": {"to": "x"}},
    }


@pytest.mark.parametrize(
    ("decision", "field"),
    [
        ({"type": "reject"}, "decisions.0.type"),
        ({"type": ["approve"]}, "decisions.0.type"),
        ({}, "decisions.0.type"),
        ({"type": "edit", "edited_action": "x"}, "decisions.0.edited_action"),
        ({"type": "edit", "edited_action": {"name": "other", "args": {}}}, "decisions.0.edited_action.name"),
        ({"type": "edit", "edited_action": {"name": "send", "args": []}}, "decisions.0.edited_action.args"),
        ({"type": "respond", "message": None}, "decisions.0.message"),
    ],
)
def test_a_bad_decision_names_the_field_that_is_wrong(decision: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decision_of("i1", {"decisions": [decision]}, value("approve", "edit", "respond"))
    assert caught.value.code == "invalid_decision"
    assert set(caught.value.fields) == {field}
    assert "i1" in caught.value.detail


@tool
def send(to: str) -> str:
    """Send."""
    return to


@tool("task")
def own_task(to: str) -> str:
    """A tool that happens to have the name."""
    return to


@pytest.mark.parametrize(
    ("approval", "fault"),
    [
        (None, None),
        (DECISIONS, None),
        ({"approve"}, None),
        (set(), "allows no decision"),
        ({"approve", "ok"}, "names ok"),
    ],
)
def test_an_approval_that_nobody_can_give_makes_the_tool_unavailable(approval: Any, fault: str | None) -> None:
    rule = AgentTool(tool=send, approval=None if approval is None else frozenset(approval))
    assert (approval_fault(rule) is None) == (fault is None)
    assert set(tool_set(Roster(tools=[rule])).tools) == (set() if fault else {"send"})
    assert fault is None or fault in str(approval_fault(rule))


def test_no_tool_of_a_plugin_has_the_name_of_one_of_the_runtimes_own() -> None:
    rules = (AgentTool(tool=own_task), AgentTool(tool=send))
    spec = SubagentSpec(name="w", description="d", prompt="p", tools=(AgentTool(tool=own_task),))
    found = tool_set(Roster(tools=rules, subagents=(spec,)))
    assert set(found.tools) == {"send"}
    assert found.subagents == ()
    assert [(skill.name, skill.state) for skill in found.unready] == [("w", "unavailable")]


def test_of_two_subagents_of_a_name_the_first_stays() -> None:
    specs = [SubagentSpec(name="w", description=text, prompt="p") for text in ("first", "second")]
    assert [subagent.description for subagent in tool_set(Roster(subagents=specs)).subagents] == ["first"]
