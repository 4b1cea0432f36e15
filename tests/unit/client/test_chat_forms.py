"""A question of the assistant at the terminal: what is shown, what a line means, and what is asked again."""

from __future__ import annotations

from typing import Any

import pytest

from pizzabot.cli.chat_forms import Person
from pizzabot_hookspecs.support.questions import checked_question, checked_reply

SIZES = [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large, with rim"}]


def choice(*options: Any) -> Any:
    return checked_question({"version": 1, "mode": "choice_with_other", "question": "Size?", "options": list(options)})


def form(**more: Any) -> Any:
    field = {"name": "it", "label": "It", **more}
    question = checked_question({"version": 2, "mode": "form", "question": "?", "fields": [field]})
    assert question["mode"] == "form"
    return question


def answered(question: Any, *typed: str) -> tuple[Any, list[str], list[tuple[str, str]]]:
    """The answer, what was told, and the prompts with what could be edited in them; every line is needed."""
    told: list[str] = []
    prompts: list[tuple[str, str]] = []
    lines = iter(typed)

    def read(prompt: str, prefilled: str = "") -> str:
        prompts.append((prompt, prefilled))
        return next(lines)

    answer = Person(tell=told.append, read=read).answer(question)
    assert next(lines, None) is None
    assert checked_reply(question, answer)
    return answer, told, prompts


def value_of(question: Any, *typed: str) -> tuple[Any, list[str]]:
    answer, told, _ = answered(question, "", *typed)
    return answer["values"].get("it"), told


@pytest.mark.parametrize("typed", ["2", "l", "large,  WITH rim"])
def test_a_choice_is_made_by_number_or_words_and_said_again(typed: str) -> None:
    answer, told, _ = answered(choice(*SIZES), " ", typed)
    assert answer == {"kind": "option", "id": "l"}
    assert told == [
        "· Size?",
        "  1. Small",
        "  2. Large, with rim",
        "  Or answer in your own words.",
        "· Large, with rim",
    ]


@pytest.mark.parametrize("typed", ["3", "0", "-1", "medium", "//2", "²"])
def test_what_is_none_of_the_options_is_an_answer_of_ones_own(typed: str) -> None:
    answer, _, _ = answered(choice(*SIZES), typed)
    assert answer == {"kind": "text", "value": typed.removeprefix("/")}


def test_options_that_are_numbers_are_meant_by_what_they_say() -> None:
    assert answered(choice("2", "4"), "2")[0] == {"kind": "option", "id": "2"}
    assert answered(choice("2", "4"), "1")[0] == {"kind": "option", "id": "2"}


def test_a_text_without_the_numbers_gets_them_and_nothing_in_it_steers_the_terminal() -> None:
    question = checked_question({**choice(*SIZES), "text": "Which\x1b[2J one?\u202e"})
    _, told, _ = answered(question, "1")
    assert told[:3] == ["· Which[2J one?", "  1. Small", "  2. Large, with rim"]


def test_a_plain_question_takes_a_text() -> None:
    answer, told, prompts = answered(checked_question("Who?\nAnd why?"), "", "me")
    assert (answer, told) == ({"kind": "text", "value": "me"}, ["· Who?", "  And why?"])
    assert prompts == [("answer: ", "")] * 2


def test_a_form_may_be_answered_in_words() -> None:
    answer, _, _ = answered(form(type="number", required=True), "as many as you like")
    assert answer == {"kind": "message", "value": "as many as you like"}


@pytest.mark.parametrize(
    ("field", "typed", "value"),
    [
        ({"type": "text"}, "a b", "a b"),
        ({"type": "text"}, "//etc", "/etc"),
        ({"type": "text"}, "", None),
        ({"type": "textarea"}, "a", "a"),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number"}, "", None),
        ({"type": "date"}, "2026-03-01", "2026-03-01"),
        ({"type": "select", "options": SIZES}, "2", "l"),
        ({"type": "select", "options": SIZES}, "small", "s"),
        ({"type": "select", "options": SIZES}, "", None),
        ({"type": "multi_select", "options": SIZES}, "2, small", ["s", "l"]),
        ({"type": "multi_select", "options": SIZES}, "Large, with rim", ["l"]),
        ({"type": "multi_select", "options": SIZES}, "", None),
        ({"type": "checkbox"}, "y", True),
        ({"type": "checkbox"}, "No", False),
        ({"type": "checkbox"}, "", False),
    ],
)
def test_a_line_is_a_value_of_each_type(field: Any, typed: str, value: Any) -> None:
    assert value_of(form(**field), typed)[0] == value


@pytest.mark.parametrize(
    ("field", "wrong", "right", "words"),
    [
        ({"type": "text", "required": True}, " ", "a", "· It is required"),
        ({"type": "text", "max": 2}, "abc", "ab", "· It must have at most 2 characters"),
        ({"type": "number", "min": 1}, "0", "1", "· It must be at least 1"),
        ({"type": "number"}, "many", "1", "· It must be a number"),
        ({"type": "date"}, "soon", "2026-03-01", "· It must be a date, as YYYY-MM-DD"),
        ({"type": "select", "options": SIZES}, "3", "1", "· It must be one of the options, by number or words"),
        (
            {"type": "multi_select", "options": SIZES},
            "1, 3",
            "1",
            "· It must be one of the options, by number or words",
        ),
        ({"type": "multi_select", "options": SIZES, "max": 1}, "1,2", "1", "· It must be at most 1 of the options"),
        ({"type": "checkbox"}, "maybe", "y", "· It must be yes or no"),
        ({"type": "checkbox", "required": True}, "", "y", "· It has to be agreed to"),
    ],
)
def test_what_does_not_fit_is_said_and_asked_again(field: Any, wrong: str, right: str, words: str) -> None:
    value, told = value_of(form(**field), wrong, right)
    assert value is not None
    assert told[-1] == words


def test_each_field_says_what_it_takes_and_begins_with_its_default() -> None:
    field = {"type": "multi_select", "options": SIZES, "help": "At\nmost both.", "default": ["l"], "required": True}
    _, told, prompts = answered(form(**field), "", "1")
    assert told[-2:] == ["  1. Small", "  2. Large, with rim"]
    assert prompts[1] == ("It (any of, required) (At most both.), several with commas: ", "Large, with rim")
    assert answered(form(type="checkbox", default=True), "", "")[2][1] == ("It (yes or no) [y/N]: ", "yes")
    assert answered(form(type="number", default=2), "", "2")[2][1][1] == "2"
