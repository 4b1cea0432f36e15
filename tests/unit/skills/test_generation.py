"""Drafts by the model: chatty answers are understood, unknown tools dropped, approvals are ours (spec/04 §4)."""

import asyncio
import json

import pytest
from mcp_doubles import connected

from pizzabot.host.skills.generation import (
    MAX_OFFERED,
    GenerationError,
    generate,
    has_side_effects,
    instructions,
    offered_tools,
    read_answer,
)
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot.testing.scripted_model import Reply, ScriptedModel

DRAFT = {
    "name": "Mail",
    "description": "reads mail",
    "body": " do it ",
    "tools": ["mcp:mail:read", "mcp:mail:read", "mcp:x:y", 1],
}
OFFERED = ("builtin:eval", "mcp:mail:*", "mcp:mail:read", "mcp:mail:sendMail")


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(DRAFT),
        f"```json\n{json.dumps(DRAFT)}\n```",
        f"Sure! Here it is:\n\n```\n{json.dumps(DRAFT, indent=1)}\n```\nAnything else?",
        f"Here you are: {json.dumps(DRAFT)} {{}} bye",
        f'<think>{{maybe}} {{"a": 1}}</think>{json.dumps(DRAFT)}',
    ],
)
def test_fenced_and_chatty_answers_are_understood(answer):
    assert read_answer(answer, OFFERED) == {
        "name": "Mail",
        "description": "reads mail",
        "body": "do it",
        "declaredTools": ["mcp:mail:read"],
        "interruptOn": {},
    }


def test_wildcards_and_tools_that_change_something_get_approvals():
    answer = json.dumps({**DRAFT, "tools": list(OFFERED)})
    asked = {"allowedDecisions": ["approve", "edit", "reject"]}
    assert read_answer(answer, OFFERED)["interruptOn"] == {"mcp:mail:*": asked, "mcp:mail:sendMail": asked}


@pytest.mark.parametrize(
    "name", ["sendMail", "send_mail", "mail-send", "SENDMail", "delete", "createPR", "bulk2update"]
)
def test_names_that_say_they_change_something_are_seen(name):
    assert has_side_effects(name)


@pytest.mark.parametrize("name", ["read_mail", "listMessages", "sender_of", "search", "get", "additional", ""])
def test_names_that_only_read_are_not(name):
    assert not has_side_effects(name)


def test_what_is_missing_gets_a_default():
    assert read_answer("{}", OFFERED) | {} == {
        "name": "New Skill", "description": "New Skill", "body": "", "declaredTools": [], "interruptOn": {},
    }  # fmt: skip
    assert read_answer('{"name": "A", "tools": "mcp:mail:read", "body": 1}', OFFERED)["description"] == "A"


@pytest.mark.parametrize("answer", ["", "no", "[1]", '"text"', "{" * 5000, '{"a": ' * 3000, "{not json}"])
def test_an_answer_without_a_skill_is_an_error(answer):
    with pytest.raises(GenerationError):
        read_answer(answer, OFFERED)


def test_only_tools_of_connected_servers_are_offered_and_their_number_is_bounded():
    states = {"mail": connected("read"), "down": ServerState(status=ServerStatus.ERROR)}
    assert list(offered_tools(states)) == ["builtin:eval", "builtin:ask_user", "mcp:mail:*", "mcp:mail:read"]
    assert "mcp:mail:read: does it" in instructions(offered_tools(states))
    assert len(offered_tools({"big": connected(*(f"t{place}" for place in range(600)))})) == MAX_OFFERED


def test_the_model_is_told_what_there_is_and_asked_once():
    async def main():
        model = ScriptedModel(script=[Reply(json.dumps(DRAFT))])
        made = await generate(model, "read my mail", {"mail": connected("read")})
        assert made["declaredTools"] == ["mcp:mail:read"]
        (call,) = model.calls
        assert "mcp:mail:read" in str(call.messages[0].text)
        assert str(call.messages[1].text) == "read my mail"

    asyncio.run(main())
