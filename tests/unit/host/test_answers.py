"""Answers to interrupts are checked before anything is resumed; what is wrong is named by its field."""

import pytest

from pizzabot.host.runs.answers import MAX_TEXT, accepts_text, checked_answer
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState

SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "copies": {"type": "integer", "minimum": 1}},
    "required": ["to"],
    "additionalProperties": False,
}


def interrupt(kind, payload):
    return Interrupt(
        interrupt_id="i", run_id="r", thread_id="t", owner="local", kind=kind, payload=payload, namespace=(),
        state=InterruptState.OPEN, created_at=0.0,
    )  # fmt: skip


def approval(*allowed, schema=SCHEMA):
    action = {"name": "send", "args": {"to": "a"}} | ({"args_schema": schema} if schema is not None else {})
    review = {"action_name": "send", "allowed_decisions": list(allowed)}
    return interrupt(InterruptKind.APPROVAL, {"action_requests": [action], "review_configs": [review]})


ANY = approval("approve", "edit", "reject", "respond")
EDITED = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "b", "copies": 2}}}


@pytest.mark.parametrize(
    ("response", "canonical"),
    [
        ({"decisions": [{"type": "approve"}]}, {"type": "approve"}),
        ({"type": "approve"}, {"type": "approve"}),
        ([{"decision": "approve"}], {"type": "approve"}),
        ({"decisions": [{"decision": "reject"}]}, {"type": "reject"}),
        ({"decisions": [{"type": "reject", "message": "no"}]}, {"type": "reject", "message": "no"}),
        (
            {"decisions": [{"type": "respond", "message": "done by hand"}]},
            {"type": "respond", "message": "done by hand"},
        ),
        ({"decisions": [EDITED]}, EDITED),
        ({"decisions": [{"type": "edit", "editedAction": EDITED["edited_action"]}]}, EDITED),
        ({"decisions": [{"decision": "edit", "editedArgs": {"to": "b", "copies": 2}}]}, EDITED),
        ({"decisions": [{"type": "approve", "message": "ignored", "x": 1}]}, {"type": "approve"}),
    ],
)
def test_every_spelling_becomes_the_canonical_one(response, canonical):
    assert checked_answer(ANY, response) == {"decisions": [canonical]}


@pytest.mark.parametrize(
    ("response", "field"),
    [
        ("approve", "response.decisions"),
        (None, "response.decisions"),
        ({"decisions": []}, "response.decisions"),
        ({"decisions": [{"type": "approve"}, {"type": "approve"}]}, "response.decisions"),
        ({"decisions": "approve"}, "response.decisions"),
        ({"decisions": ["approve"]}, "response.decisions.0"),
        ({"decisions": [{}]}, "response.decisions.0.type"),
        ({"decisions": [{"type": "maybe"}]}, "response.decisions.0.type"),
        ({"decisions": [{"type": ["approve"]}]}, "response.decisions.0.type"),
        ({"decisions": [{"type": "respond"}]}, "response.decisions.0.message"),
        ({"decisions": [{"type": "respond", "message": "  "}]}, "response.decisions.0.message"),
        ({"decisions": [{"type": "reject", "message": "x" * (MAX_TEXT + 1)}]}, "response.decisions.0.message"),
        ({"decisions": [{"type": "edit"}]}, "response.decisions.0.edited_action"),
        (
            {"decisions": [{"type": "edit", "edited_action": {"name": "rm", "args": {}}}]},
            "response.decisions.0.edited_action.name",
        ),
        ({"decisions": [{"type": "edit", "edited_action": {"args": 3}}]}, "response.decisions.0.edited_action.args"),
        (
            {"decisions": [{"type": "edit", "edited_action": {"args": {"to": "b", "copies": 0}}}]},
            "response.decisions.0.edited_action.args.copies",
        ),
        ({"decisions": [{"type": "edit", "edited_action": {"args": {}}}]}, "response.decisions.0.edited_action.args"),
    ],
)
def test_a_wrong_answer_is_refused_with_the_field_that_is_wrong(response, field):
    with pytest.raises(InvalidRequest) as refused:
        checked_answer(ANY, response)
    assert refused.value.code == "invalid_decision"
    assert field in refused.value.fields


def test_only_what_the_interrupt_allows_is_allowed():
    for kind in ("edit", "approve", "respond"):
        with pytest.raises(InvalidRequest):
            checked_answer(approval("reject"), {"type": kind, "message": "x", "editedArgs": {"to": "b"}})
    assert checked_answer(approval("reject"), {"type": "reject"}) == {"decisions": [{"type": "reject"}]}


def test_an_interrupt_that_allows_nothing_refuses_everything():
    for kind in ("approve", "reject"):
        with pytest.raises(InvalidRequest):
            checked_answer(approval(), {"type": kind})


OPEN = {"type": "object", "properties": {"to": {"type": "string"}}}


@pytest.mark.parametrize("more", [{"N": 500}, {"to": "b", "cc": "c"}])
def test_an_edit_with_an_argument_that_the_tool_does_not_know_is_refused_with_its_field(more):
    edited = {"type": "edit", "edited_action": {"args": {"to": "b"} | more}}
    for schema in (OPEN, SCHEMA):
        with pytest.raises(InvalidRequest) as refused:
            checked_answer(approval("edit", schema=schema), edited)
        assert refused.value.code == "invalid_decision"
        unknown = (more.keys() - {"to"}).pop()
        assert f"response.decisions.0.edited_action.args.{unknown}" in refused.value.fields
    answer = checked_answer(approval("edit", schema=OPEN | {"additionalProperties": True}), edited)
    assert answer["decisions"][0]["edited_action"]["args"] == {"to": "b"} | more


def test_a_question_that_takes_an_object_takes_what_json_schema_says():
    question = interrupt(InterruptKind.INPUT, {"question": "who?", "answer_schema": OPEN})
    assert checked_answer(question, {"to": "b", "more": 1}) == {"to": "b", "more": 1}


@pytest.mark.parametrize(
    "payload",
    [
        {}, {"action_requests": 3}, {"action_requests": [3], "review_configs": [3]},
        {"action_requests": [{"name": ["a"]}], "review_configs": [{"action_name": ["a"], "allowed_decisions": 3}]},
        {"action_requests": [{"name": "send"}], "review_configs": {"action_name": "send"}},
    ],
)  # fmt: skip
def test_an_approval_that_a_tool_wrote_wrongly_allows_nothing(payload):
    with pytest.raises(InvalidRequest):
        checked_answer(interrupt(InterruptKind.APPROVAL, payload), {"type": "approve"})


def test_an_edit_against_a_broken_schema_is_refused():
    with pytest.raises(InvalidRequest):
        checked_answer(approval("edit", schema={"type": "nonsense"}), {"type": "edit", "editedArgs": {}})


def test_each_of_several_actions_has_its_own_decision_in_order():
    two = interrupt(
        InterruptKind.APPROVAL,
        {
            "action_requests": [{"name": "a", "args": {}}, {"name": "b", "args": {}}],
            "review_configs": [
                {"action_name": "a", "allowed_decisions": ["approve"]},
                {"action_name": "b", "allowed_decisions": ["reject"]},
            ],
        },
    )
    mixed = {"decisions": [{"type": "approve"}, {"type": "reject"}]}
    assert checked_answer(two, mixed) == mixed
    with pytest.raises(InvalidRequest) as refused:
        checked_answer(two, {"decisions": [{"type": "approve"}, {"type": "approve"}]})
    assert list(refused.value.fields) == ["response.decisions.1.type"]


def test_a_question_takes_what_its_schema_takes():
    question = interrupt(InterruptKind.INPUT, {"question": "how many?", "answer_schema": {"type": "integer"}})
    assert checked_answer(question, 3) == 3
    with pytest.raises(InvalidRequest):
        checked_answer(question, "three")
    with pytest.raises(InvalidRequest):
        checked_answer(question, None)
    assert not accepts_text(question)
    assert accepts_text(interrupt(InterruptKind.INPUT, {"question": "who?"}))
    assert not accepts_text(ANY)


@pytest.mark.parametrize("response", [{"choice": "retry"}, "retry", {"decisions": [{"type": "retry"}]}])
def test_a_recovery_takes_one_of_three_choices(response):
    recovery = interrupt(InterruptKind.RECOVERY, {"actions": [], "choices": ["retry", "skip", "stop"]})
    assert checked_answer(recovery, response) == {"choice": "retry"}


@pytest.mark.parametrize("response", [{}, {"choice": "approve"}, {"decisions": [{"type": "approve"}]}, 3])
def test_a_recovery_takes_nothing_else(response):
    recovery = interrupt(InterruptKind.RECOVERY, {"actions": [], "choices": ["retry", "skip", "stop"]})
    with pytest.raises(InvalidRequest) as refused:
        checked_answer(recovery, response)
    assert "response.choice" in refused.value.fields


def test_an_answer_has_a_limit_and_its_surrogates_are_replaced():
    with pytest.raises(InvalidRequest):
        checked_answer(interrupt(InterruptKind.INPUT, {}), "x" * 300_000)
    assert checked_answer(interrupt(InterruptKind.INPUT, {}), "a\ud83d") == "a\ufffd"


FORM = {
    "version": 2,
    "mode": "form",
    "question": "Book a table",
    "fields": [
        {"name": "people", "label": "People", "type": "number", "required": True},
        {"name": "terms", "label": "I agree", "type": "checkbox", "required": True},
    ],
}


def test_a_question_with_a_mode_takes_one_canonical_answer_and_names_faults_by_the_forms_own_names():
    question = interrupt(InterruptKind.INPUT, FORM)
    values = {"people": 2, "terms": True}
    assert checked_answer(question, {"kind": "form", "values": values}) == {"kind": "form", "values": values}
    with pytest.raises(InvalidRequest) as refused:
        checked_answer(question, {"kind": "form", "values": {"people": "two", "more": 1}})
    assert refused.value.code == "invalid_decision"
    assert refused.value.fields == {"people": "not_a_number", "terms": "required", "more": "unknown_field"}


def test_of_several_answers_the_faults_are_below_their_own_place():
    with pytest.raises(InvalidRequest) as refused:
        checked_answer(interrupt(InterruptKind.INPUT, FORM), {"values": {"people": 2}}, field="responses.1.response")
    assert refused.value.fields == {"responses.1.response.terms": "required"}
    assert refused.value.detail.startswith("responses.1.response: ")


@pytest.mark.parametrize("payload", [FORM, {**FORM, "mode": "free_text"}, {**FORM, "version": 9, "fields": 3}])
def test_a_plain_text_answers_a_question_of_every_mode(payload):
    question = interrupt(InterruptKind.INPUT, payload)
    assert accepts_text(question)
    for given in ("two, please", {"value": "two, please"}):
        assert checked_answer(question, given) == {"kind": "message", "value": "two, please"}


def test_a_question_that_brings_a_schema_is_checked_by_it_whatever_else_it_has():
    question = interrupt(InterruptKind.INPUT, {**FORM, "answer_schema": {"type": "integer"}})
    assert checked_answer(question, 3) == 3
    assert not accepts_text(question)
