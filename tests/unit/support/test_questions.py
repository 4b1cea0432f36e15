"""Questions to the person: their one form, what degrades, what an answer may be, and what the model reads of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.support.question_values import MAX_NUMBER
from pizzabot_hookspecs.support.questions import (
    MAX_FIELDS,
    MAX_LABEL_CHARS,
    MAX_OPTIONS,
    MAX_QUESTION_BYTES,
    MAX_REPLY_CHARS,
    answer_faults,
    checked_question,
    checked_reply,
    is_question,
    reply_text,
)

SIZES = [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large"}]
CHOICE = {"version": 1, "mode": "choice_with_other", "question": "Which size?", "options": SIZES}
TABLE = [
    {"name": "guest", "label": "Name", "type": "text", "required": True, "max": 10},
    {"name": "note", "label": "Note", "type": "textarea"},
    {"name": "people", "label": "People", "type": "number", "required": True, "min": 1, "max": 12},
    {"name": "size", "label": "Size", "type": "select", "options": SIZES, "required": True},
    {"name": "extra", "label": "Extras", "type": "multi_select", "options": ["olives", "capers", "nuts"], "max": 2},
    {"name": "inside", "label": "Inside", "type": "checkbox"},
    {"name": "terms", "label": "I agree", "type": "checkbox", "required": True},
    {"name": "day", "label": "Day", "type": "date", "min": "2026-01-01", "max": "2026-12-31"},
]
FORM = {"version": 2, "mode": "form", "question": "Book a table", "fields": TABLE}


def form(*fields: dict[str, Any]) -> Any:
    question = checked_question({**FORM, "fields": list(fields)})
    assert question["mode"] == "form", question
    return question


def one(kind: str, **more: Any) -> Any:
    return form({"name": "it", "label": "It", "type": kind, **more})


def value_of(question: Any, value: Any) -> Any:
    answer: Any = checked_reply(question, {"kind": "form", "values": {"it": value}})
    return answer["values"].get("it")


def fault_of(question: Any, value: Any) -> str:
    [(name, code)] = answer_faults(question, {"kind": "form", "values": {"it": value}}).items()
    assert name == "it"
    return code


def refused(question: Any, response: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        checked_reply(question, response)
    assert caught.value.code == "invalid_decision"
    return caught.value


# -- questions ------------------------------------------------------------------------------------------------------


def test_a_bare_text_is_a_question_in_words() -> None:
    asked = {"version": 1, "mode": "free_text", "question": "Who?", "text": "Who?"}
    assert checked_question(" Who? ") == asked
    assert checked_question({"version": 1, "mode": "free_text", "question": "Who?"}) == asked


def test_a_choice_has_its_options_in_its_text() -> None:
    question = checked_question(CHOICE)
    assert question == {
        **CHOICE,
        "text": "Which size?\n1. Small\n2. Large\nOr answer in your own words.",
    }
    assert checked_question({**CHOICE, "options": ["s", {"id": "l", "label": None}]})["options"] == [
        {"id": "s", "label": "s"},
        {"id": "l", "label": "l"},
    ]


def test_a_form_says_what_each_field_takes_in_its_text() -> None:
    assert checked_question(FORM)["text"].split("\n") == [
        "Book a table",
        "- Name (required, at most 10 characters)",
        "- Note",
        "- People (a number, required, at least 1, at most 12)",
        "- Size (one of, required): Small / Large",
        "- Extras (any of, at most 2): olives / capers / nuts",
        "- Inside (yes or no)",
        "- I agree (yes or no, required)",
        "- Day (a date, YYYY-MM-DD, from 2026-01-01, until 2026-12-31)",
    ]


def test_a_text_of_its_own_is_kept_and_nothing_is_added_to_the_form() -> None:
    question = checked_question({**CHOICE, "text": "Small or large?", "answer_schema": {}, "more": 1})
    assert question == {**CHOICE, "text": "Small or large?"}
    field = {"name": "it", "label": "It", "type": "text", "options": None, "help": None, "min": None, "more": 1}
    assert form(field)["fields"] == [{"name": "it", "label": "It", "type": "text"}]


WRONG_FIELDS = [
    {"name": "constructor"},
    {"name": "__proto__"},
    {"name": "toString"},
    {"name": "Name"},
    {"name": "1a"},
    {"name": "a" * 65},
    {"name": "it\n"},
    {"name": None},
    {"label": "x" * (MAX_LABEL_CHARS + 1)},
    {"label": " "},
    {"label": 3},
    {"type": "password"},
    {"type": ["text"]},
    {"type": None},
    {"required": "yes"},
    {"help": 3},
    {"min": "1"},
    {"min": -1},
    {"min": 1.5},
    {"min": 3, "max": 2},
    {"type": "number", "min": float("nan")},
    {"type": "number", "max": float("inf")},
    {"type": "number", "max": True},
    {"type": "number", "max": 10**400},
    {"type": "number", "default": "many"},
    {"type": "number", "default": 3, "max": 2},
    {"type": "date", "min": "2026-02-30"},
    {"type": "date", "min": "2026-02-02", "max": "2026-02-01"},
    {"type": "date", "default": "tomorrow"},
    {"type": "checkbox", "default": "yes"},
    {"type": "select"},
    {"type": "select", "options": []},
    {"type": "select", "options": "ab"},
    {"type": "select", "options": ["a", "a"]},
    {"type": "select", "options": [str(number) for number in range(MAX_OPTIONS + 1)]},
    {"type": "select", "options": [3]},
    {"type": "select", "options": [{}]},
    {"type": "select", "options": ["a"], "default": "b"},
    {"type": "multi_select", "options": ["a"], "default": "a"},
]


@pytest.mark.parametrize("wrong", WRONG_FIELDS, ids=repr)
def test_a_field_that_cannot_be_one_degrades_the_form_to_its_words(wrong: Any) -> None:
    field = {"name": "it", "label": "It", "type": "text", **wrong}
    question = checked_question({**FORM, "fields": [TABLE[0], field]})
    assert (question["version"], question["mode"]) == (1, "free_text")
    assert question["text"].startswith("Book a table\n- Name")
    assert "fields" not in question
    assert checked_reply(question, "in words") == {"kind": "message", "value": "in words"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 3},
        {"version": True},
        {"version": "2"},
        {"version": None},
        {"version": 1},
        {"mode": "wizard"},
        {"mode": ["form"]},
        {"mode": "choice_with_other"},
        {"fields": []},
        {"fields": {}},
        {"fields": [TABLE[0], TABLE[0]]},
        {"fields": [TABLE[0], "Day"]},
        {"question": 3},
        {"text": ["a"]},
    ],
    ids=repr,
)
def test_an_unknown_version_or_mode_and_a_wrong_shape_degrade_to_answerable_text(wrong: Any) -> None:
    question = checked_question({**FORM, **wrong})
    assert (question["version"], question["mode"], set(question)) == (
        1,
        "free_text",
        {"version", "mode", "question", "text"},
    )
    assert question["text"]
    assert checked_reply(question, {"kind": "text", "value": "so"}) == {"kind": "text", "value": "so"}


def test_sixteen_fields_are_a_form_and_seventeen_are_asked_in_words_each_of_them_named() -> None:
    fields = [{"name": f"f{number}", "label": f"Field {number}", "type": "text"} for number in range(MAX_FIELDS + 1)]
    assert checked_question({**FORM, "fields": fields[:-1]})["mode"] == "form"
    question = checked_question({**FORM, "fields": fields})
    assert question["mode"] == "free_text"
    assert all(field["label"] in question["text"] for field in fields)


def test_twenty_four_options_are_a_choice_and_twenty_five_are_asked_in_words() -> None:
    options = [str(number) for number in range(MAX_OPTIONS + 1)]
    assert checked_question({**CHOICE, "options": options[:-1]})["mode"] == "choice_with_other"
    question = checked_question({**CHOICE, "options": options})
    assert (question["mode"], "- 24" in question["text"]) == ("free_text", True)


@pytest.mark.parametrize("filler", ["x", "ü", "\x00", "\ud800", '"', "😀"])
def test_seventeen_kibibytes_are_cut_to_a_text_that_fits(filler: str) -> None:
    question = checked_question({**CHOICE, "text": "Which size? " + filler * 17 * 1024})
    assert question["mode"] == "free_text"
    assert len(json.dumps(question, ensure_ascii=False).encode()) <= MAX_QUESTION_BYTES
    assert question["text"].startswith("Which size?")
    assert len(question["text"]) > 1_000


def test_a_long_question_is_whole_in_its_text() -> None:
    text = "why " * 3_000
    question = checked_question(text)
    assert question["text"] == text.strip()
    assert len(question["question"]) <= 500


@pytest.mark.parametrize("raw", [None, 3, [], {}, "", {"version": 1, "mode": "free_text", "question": " "}])
def test_a_question_without_words_can_be_answered(raw: Any) -> None:
    question = checked_question(raw)
    assert question["text"]
    assert checked_reply(question, "so") == {"kind": "message", "value": "so"}


# -- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "given", "canonical"),
    [
        (one("text"), " a\ud800 ", " a\ufffd "),
        (one("textarea"), "a\nb", "a\nb"),
        (one("text"), " ", None),
        (one("number"), 3, 3),
        (one("number"), -2.5, -2.5),
        (one("number"), " +3 ", 3),
        (one("number"), "1.5e1", 15.0),
        (one("number"), ".5", 0.5),
        (one("number"), "", None),
        (one("select", options=SIZES), "s", "s"),
        (one("multi_select", options=["a", "b", "c"]), ["c", "a", "c"], ["a", "c"]),
        (one("multi_select", options=["a"]), [], None),
        (one("checkbox"), None, False),
        (one("checkbox"), True, True),
        (one("checkbox", default=True), None, False),
        (one("checkbox", required=True), True, True),
        (one("date"), " 2024-02-29 ", "2024-02-29"),
        (one("date", default="2024-02-29"), None, None),
    ],
)
def test_each_type_takes_its_values(question: Any, given: Any, canonical: Any) -> None:
    assert value_of(question, given) == canonical
    assert type(value_of(question, given)) is type(canonical)


@pytest.mark.parametrize(
    ("question", "given", "code"),
    [
        (one("text", required=True), None, "required"),
        (one("text", required=True), " \n", "required"),
        (one("text"), 3, "not_text"),
        (one("text", min=2), "a", "too_short"),
        (one("text", max=2), "abc", "too_long"),
        (one("textarea"), "x" * (MAX_REPLY_CHARS + 1), "too_long"),
        (one("number", required=True), "", "required"),
        (one("number"), "three", "not_a_number"),
        (one("number"), True, "not_a_number"),
        (one("number"), [1], "not_a_number"),
        (one("number"), float("nan"), "not_a_number"),
        (one("number"), float("inf"), "not_a_number"),
        (one("number"), "1e999", "not_a_number"),
        (one("number"), "1_000", "not_a_number"),
        (one("number"), "٣", "not_a_number"),
        (one("number"), 10**400, "too_large"),
        (one("number"), -(MAX_NUMBER + 1), "too_small"),
        (one("number", min=1), 0, "too_small"),
        (one("number", max=2), 2.1, "too_large"),
        (one("select", options=SIZES, required=True), None, "required"),
        (one("select", options=SIZES), "Small", "not_an_option"),
        (one("select", options=SIZES), ["s"], "not_an_option"),
        (one("multi_select", options=SIZES), "s", "not_an_option"),
        (one("multi_select", options=SIZES), ["s", {}], "not_an_option"),
        (one("multi_select", options=SIZES, required=True), [], "required"),
        (one("multi_select", options=SIZES, min=2), ["s"], "too_few"),
        (one("multi_select", options=SIZES, max=1), ["s", "l"], "too_many"),
        (one("checkbox"), "yes", "not_a_boolean"),
        (one("checkbox"), 1, "not_a_boolean"),
        (one("checkbox", required=True), None, "required"),
        (one("checkbox", required=True), False, "required"),
        (one("date", required=True), None, "required"),
        (one("date"), "2026-02-30", "invalid_date"),
        (one("date"), "20260228", "invalid_date"),
        (one("date"), "2026-W01-1", "invalid_date"),
        (one("date"), "28.2.2026", "invalid_date"),
        (one("date"), 20260228, "invalid_date"),
        (one("date", min="2026-01-02"), "2026-01-01", "too_small"),
        (one("date", max="2026-01-02"), "2026-01-03", "too_large"),
    ],
)
def test_each_type_refuses_what_does_not_fit_with_a_code(question: Any, given: Any, code: str) -> None:
    assert fault_of(question, given) == code
    assert refused(question, {"kind": "form", "values": {"it": given}}).detail.count("it ") >= 1


def test_all_faults_come_at_once_by_field_and_the_detail_says_them_in_words() -> None:
    values = {
        "guest": "much too long a name",
        "people": 13,
        "size": "xl",
        "extra": ["olives", "capers", "nuts"],
        "day": "never",
        "__proto__": {"polluted": True},
        "constructor": 1,
    }
    error = refused(checked_question(FORM), {"kind": "form", "values": values})
    assert error.fields == {
        "guest": "too_long",
        "people": "too_large",
        "size": "not_an_option",
        "extra": "too_many",
        "terms": "required",
        "day": "invalid_date",
        "__proto__": "unknown_field",
        "constructor": "unknown_field",
    }
    assert error.fields == answer_faults(checked_question(FORM), {"kind": "form", "values": values})
    for words in ("guest must have at most 10 characters", "people must be at most 12", "size must be one of s, l"):
        assert words in error.detail
    assert "the question stays open" in error.detail


def test_names_that_no_field_has_are_named_up_to_a_number_and_a_length() -> None:
    values = {f"{number}{'x' * 500}": 1 for number in range(500)}
    error = refused(one("text"), {"kind": "form", "values": values})
    assert len(error.fields) == 16
    assert max(map(len, error.fields)) == 64


CHOSEN = {"kind": "option", "id": "l"}


@pytest.mark.parametrize(
    ("question", "response", "canonical"),
    [
        (checked_question("Who?"), {"kind": "text", "value": "me"}, {"kind": "text", "value": "me"}),
        (checked_question("Who?"), {"kind": "message", "value": "me"}, {"kind": "message", "value": "me"}),
        (checked_question("Who?"), {"value": "me"}, {"kind": "message", "value": "me"}),
        (checked_question("Who?"), "me", {"kind": "message", "value": "me"}),
        (checked_question(CHOICE), CHOSEN, CHOSEN),
        (checked_question(CHOICE), {"id": "l"}, CHOSEN),
        (checked_question(CHOICE), {"kind": "text", "value": "medium"}, {"kind": "text", "value": "medium"}),
        (checked_question(CHOICE), "medium", {"kind": "message", "value": "medium"}),
        (checked_question(CHOICE), {"value": "medium"}, {"kind": "message", "value": "medium"}),
        (one("text"), {"kind": "form", "values": {"it": "a"}}, {"kind": "form", "values": {"it": "a"}}),
        (one("text"), {"values": {"it": "a"}}, {"kind": "form", "values": {"it": "a"}}),
        (one("text"), {"value": {"it": "a"}}, {"kind": "form", "values": {"it": "a"}}),
        (one("text"), {"kind": "form", "values": {}}, {"kind": "form", "values": {}}),
        (one("text"), {"kind": "text", "value": "a"}, {"kind": "message", "value": "a"}),
        (one("text"), {"value": "a"}, {"kind": "message", "value": "a"}),
        (one("text"), "a", {"kind": "message", "value": "a"}),
    ],
)
def test_every_spelling_becomes_the_canonical_answer(question: Any, response: Any, canonical: Any) -> None:
    assert checked_reply(question, response) == canonical
    assert checked_reply(question, canonical) == canonical


@pytest.mark.parametrize(
    ("question", "response", "fields"),
    [
        (checked_question("Who?"), None, {"response": "required"}),
        (checked_question("Who?"), 3, {"response": "not_an_answer"}),
        (checked_question("Who?"), ["me"], {"response": "not_an_answer"}),
        (checked_question("Who?"), {}, {"kind": "required"}),
        (checked_question("Who?"), {"kind": ["text"], "value": "a"}, {"kind": "unknown_kind"}),
        (checked_question("Who?"), CHOSEN, {"kind": "unknown_kind"}),
        (checked_question("Who?"), {"kind": "text"}, {"value": "required"}),
        (checked_question("Who?"), {"kind": "text", "value": 3}, {"value": "not_text"}),
        (checked_question("Who?"), " ", {"value": "required"}),
        (checked_question("Who?"), "x" * (MAX_REPLY_CHARS + 1), {"value": "too_long"}),
        (checked_question(CHOICE), {"kind": "option"}, {"id": "required"}),
        (checked_question(CHOICE), {"kind": "option", "id": "Large"}, {"id": "not_an_option"}),
        (checked_question(CHOICE), {"kind": "option", "id": {}}, {"id": "not_an_option"}),
        (checked_question(CHOICE), {"kind": "form", "values": {}}, {"kind": "unknown_kind"}),
        (one("text"), {"kind": "form"}, {"values": "required"}),
        (one("text"), {"kind": "form", "values": ["a"]}, {"values": "not_an_object"}),
        (one("text"), CHOSEN, {"kind": "unknown_kind"}),
    ],
)
def test_what_is_no_answer_is_refused_with_its_part(question: Any, response: Any, fields: Any) -> None:
    assert refused(question, response).fields == fields


# -- results --------------------------------------------------------------------------------------------------------


def test_a_form_is_told_in_lines_and_as_one_json_block() -> None:
    values = {
        "guest": "Ada",
        "note": "by the\nwindow",
        "people": 2,
        "size": "l",
        "extra": ["capers", "olives"],
        "terms": True,
    }
    question = checked_question(FORM)
    told = reply_text(question, checked_reply(question, {"kind": "form", "values": values}))
    lines, _, block = told.partition("\n\n")
    assert lines.split("\n") == [
        "Name: Ada",
        "Note: ",
        "  by the",
        "  window",
        "People: 2",
        "Size: Large",
        "Extras: olives, capers",
        "Inside: no",
        "I agree: yes",
        "Day: (no answer)",
    ]
    assert block.startswith("```json\n")
    assert json.loads(block.removeprefix("```json\n").removesuffix("\n```")) == {
        **values,
        "extra": ["olives", "capers"],
        "inside": False,
    }


def test_a_text_a_choice_and_a_message_are_told_in_words() -> None:
    assert reply_text(checked_question("Who?"), {"kind": "text", "value": "me"}) == "me"
    assert reply_text(checked_question(CHOICE), CHOSEN) == "Large"
    assert reply_text(checked_question(CHOICE), {"kind": "message", "value": "neither"}) == "neither"
    told = reply_text(one("text"), {"kind": "message", "value": "not now"})
    assert told == "The form was not filled in; the person answered in words:\nnot now"


# -- anything -------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["it", "s", "text", "form", "number", "select", "option", "2026-01-01", "", "\ud800", "__proto__"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | WORDS, inner, max_size=4),
    max_leaves=12,
)
KEYS = ("name", "label", "type", "required", "help", "min", "max", "options", "default", "id")
FIELDS = st.dictionaries(st.sampled_from(KEYS), JSON) | st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "c"]), "type": st.sampled_from([field["type"] for field in TABLE])},
    optional=dict.fromkeys(KEYS[3:], JSON) | {"options": st.lists(st.text() | WORDS, max_size=3)},
)
QUESTIONS = JSON | st.fixed_dictionaries(
    {
        "version": st.sampled_from([1, 2, 3]) | JSON,
        "mode": st.sampled_from(["free_text", "choice_with_other", "form"]) | JSON,
    },
    optional={
        "question": st.text() | JSON,
        "text": st.text() | JSON,
        "options": st.lists(st.text() | JSON, max_size=4) | JSON,
        "fields": st.lists(FIELDS, max_size=4) | JSON,
    },
)
REPLIES = JSON | st.fixed_dictionaries(
    {"kind": st.sampled_from(["text", "option", "form", "message"]) | JSON},
    optional={
        "value": JSON,
        "id": JSON,
        "values": st.dictionaries(st.sampled_from(["a", "b", "c", "it"]), JSON) | JSON,
    },
)


@settings(max_examples=400, deadline=None)
@given(raw=QUESTIONS, response=REPLIES)
def test_any_question_is_one_and_any_reply_is_an_answer_or_is_refused(raw: Any, response: Any) -> None:
    question = checked_question(raw)
    assert is_question(question)
    assert question["text"].strip()
    assert len(json.dumps(question, ensure_ascii=False, allow_nan=False).encode()) <= MAX_QUESTION_BYTES
    assert checked_question(question) == question
    assert checked_reply(question, "in words") == {"kind": "message", "value": "in words"}
    if faults := answer_faults(question, response):
        error = refused(question, response)
        assert (error.fields, "\n" in error.detail) == (faults, False)
        return
    answer = checked_reply(question, response)
    assert checked_reply(question, answer) == answer
    json.dumps(answer, allow_nan=False, ensure_ascii=False).encode()
    assert reply_text(question, answer)


@settings(max_examples=200, deadline=None)
@given(raw=QUESTIONS, answer=JSON)
def test_an_answer_that_came_past_the_check_is_told_somehow(raw: Any, answer: Any) -> None:
    assert isinstance(reply_text(checked_question(raw), answer), str)


def test_a_structure_without_end_is_a_question_without_words() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert checked_question(deep)["text"]
    nested: Any = "x"
    for _ in range(5_000):
        nested = {"label": "a", "options": [nested]}
    assert checked_question({**FORM, "fields": [nested]})["mode"] == "free_text"
