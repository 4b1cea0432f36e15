"""A form that `ask_user` asks, for LangGraph's own client: it knows no forms, and answers by a text (statement 100)."""

from __future__ import annotations

import pytest
from scenarios import tool
from sdk import conversation, played, talking

KINDS = pytest.mark.parametrize("kind", ["async", "sync"])
FIELDS = [
    {"name": "people", "label": "People", "type": "number", "required": True},
    {"name": "inside", "label": "Inside", "type": "checkbox"},
]
FORM = f"{tool('ask_user', question='Book a table', fields=FIELDS)} [[then]] thanks"


async def result_of(place, kind, response):
    """What the tool returned for what the client responded."""
    async with talking(kind, place.http) as talk:
        await talk.start(FORM)
        (asked,) = await talk.interrupts(1)
        assert asked["value"]["text"] == "Book a table\n- People (a number, required)\n- Inside (yes or no)"
        assert (asked["value"]["version"], asked["value"]["mode"]) == (2, "form")
        watching = await talk.answer((asked["interrupt_id"], response))
        assert (await watching).texts == ["thanks"]
        (result,) = [text for kind, text in conversation(await talk.output()) if kind == "tool"]
        return result


@KINDS
@pytest.mark.parametrize("response", ["two, inside", {"value": "two, inside"}], ids=["text", "value"])
def test_a_form_is_answered_by_its_text(shared_place, kind, response):
    told = played(result_of(shared_place, kind, response))
    assert told == "The form was not filled in; the person answered in words:\ntwo, inside"


@KINDS
def test_a_form_is_filled_in_by_a_client_that_knows_it(shared_place, kind):
    told = played(result_of(shared_place, kind, {"kind": "form", "values": {"people": 2}}))
    assert told == 'People: 2\nInside: no\n\n```json\n{"people": 2, "inside": false}\n```'


@KINDS
def test_an_answer_that_does_not_fit_says_what_is_wrong_and_can_be_given_again(shared_place, kind):
    async def scene():
        async with talking(kind, shared_place.http) as talk:
            await talk.start(FORM)
            (asked,) = await talk.interrupts(1)
            with pytest.raises(RuntimeError, match=r"invalid_decision"):
                await (await talk.answer((asked["interrupt_id"], {"kind": "form", "values": {"people": "x"}})))
            watching = await talk.answer((asked["interrupt_id"], "two"))
            assert (await watching).texts == ["thanks"]

    played(scene())
