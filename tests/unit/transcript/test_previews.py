"""Previews are valid JSON of what was written: exact numbers, keys in order and doubled, pairs whole (47, 48)."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.host.transcript.previews import (
    ELLIPSIS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_STRING,
    preview,
    previewed,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6)
)


def long_text(value, ascii_only):
    """The value often enough in a list to be too long."""
    one = json.dumps(value, ensure_ascii=ascii_only)
    return "[" + ",".join([one] * (MAX_CHARACTERS // len(one) + 2)) + "]"


@given(VALUES, st.booleans())
@settings(deadline=None, max_examples=100)
def test_a_preview_of_a_structure_can_be_parsed_and_is_its_beginning(value, ascii_only):
    text = long_text(value, ascii_only)
    cut = preview(text)
    assert len(cut) <= MAX_CHARACTERS
    _begins(json.loads(cut), json.loads(text), 1)


def _begins(part, whole, depth):
    assert type(part) is type(whole)
    if isinstance(whole, str):
        cut = part.removesuffix(ELLIPSIS)
        assert part == whole or (whole.startswith(cut) and len(cut) <= MAX_STRING)
    elif isinstance(whole, dict):
        keys = list(part)
        assert keys == list(whole)[: len(keys)]
        for key in keys:
            _begins(part[key], whole[key], depth + 1)
    elif isinstance(whole, list):
        for one, other in zip(part, whole, strict=False):
            _begins(one, other, depth + 1)
        assert depth > MAX_DEPTH or len(part) <= len(whole)
    else:
        assert part == whole


def test_numbers_and_doubled_keys_stand_as_they_were_written():
    exact = '{"id":12345678901234567890,"10":1.0,"9":1E+5,"a":1,"a":-0.0}'
    text = "[" + ",".join([exact] * 400) + "]"
    cut = preview(text)
    assert cut.startswith("[" + exact + "," + exact)
    assert "12345678901234567890" in cut


def test_a_long_string_leaves_room_for_what_stands_behind_it():
    text = json.dumps({"content": "x" * 50_000, "path": "/a.txt"})
    assert json.loads(preview(text)) == {"content": "x" * (MAX_STRING - 1) + ELLIPSIS, "path": "/a.txt"}


@pytest.mark.parametrize("shift", range(12))
def test_pairs_and_escapes_are_never_divided(shift):
    for unit in ("\\ud83c\\udf55", "\\n", '\\"', "\\\\", "\\u00e9", "🍕"):
        text = '["' + "x" * shift + unit * 8_000 + '"]'
        (part,) = json.loads(preview(text))
        part.encode()
        assert set(part) <= set("x" + json.loads(f'"{unit}"') + ELLIPSIS)


def test_what_is_too_deep_is_shown_empty():
    text = json.dumps([[[[[[[[1, 2]], {"a": 1}, 7]]]]], "y" * 20_000])
    assert json.loads(preview(text))[0] == [[[[[[], {}, 7]]]]]  # the list at the sixth level is the last with members


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] a line of a log\n" * 1_000,
        "plain text " * 2_000,
        '{"a": 1}\n{"a": 2}\n' * 1_000,
        "{not: json}" * 2_000,
        "[1, 2" + ", NaN" * 5_000 + "]",
        "{" * 20_000,
        '{"a" 1}' * 3_000,
        '["' + "\n" * 20_000 + '"]',
        "[1,]" * 5_000,
    ],
)
def test_what_only_begins_like_a_structure_is_cut_as_text(text):
    cut = preview(text)
    assert len(cut) <= MAX_CHARACTERS
    assert text.startswith(cut)


def test_short_texts_are_left_alone_and_an_empty_one_is_not_none():
    assert previewed("", call_id="c", part="output") == ""
    exact = "[" + "1," * 5_999 + "]"
    assert (len(exact), previewed(exact, call_id="c", part="input")) == (12_000, exact)


def test_large_structures_of_small_values_keep_to_the_limit_of_characters():
    cut = preview(json.dumps(list(range(100_000))))
    assert len(cut) <= MAX_CHARACTERS
    assert json.loads(cut) == list(range(len(json.loads(cut))))
    assert re.search(r"\d\]$", cut)
