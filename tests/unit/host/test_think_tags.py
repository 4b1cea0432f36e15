"""Inline reasoning is cut out of text, never out of code, however the text arrives (spec/12 §1.1, statement 50)."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.host.models.think_tags import Piece, ThinkTags


def cut(*parts, prefilled=False):
    """[(reasoning?, text) by block], and whether the reasoning is unclosed."""
    tags = ThinkTags(prefilled=prefilled)
    pieces = [piece for part in parts for piece in tags.feed(part)] + tags.close()
    joined = {}
    for piece in pieces:
        joined[piece.block] = (piece.reasoning, joined.get(piece.block, (None, ""))[1] + piece.text)
    assert [piece.block for piece in pieces] == sorted(piece.block for piece in pieces)
    return [("thought" if reasoning else "text", text) for reasoning, text in joined.values()], tags.unclosed


CASES = {
    "tag at the start": ("<think>a b</think>c", [("thought", "a b"), ("text", "c")]),
    "blank lines beside tags": ("\n\n<think>\na\n</think>\n\nc\n", [("thought", "a"), ("text", "c\n")]),
    "tag at the start of a line": ("x\n<think>a</think>\ny", [("text", "x\n"), ("thought", "a"), ("text", "y")]),
    "tag indented by three": ("   <think>a</think>b", [("thought", "a"), ("text", "b")]),
    "tag indented by four": ("    <think>a</think>b", [("text", "    <think>a</think>b")]),
    "tag indented by a tab": ("x\n\n\t<think>a</think>b", [("text", "x\n\n\t<think>a</think>b")]),
    "tag within a line": ("x <think>a</think>", [("text", "x <think>a</think>")]),
    "code span": ("`<think>`\n`a\n<think>` b", [("text", "`<think>`\n`a\n<think>` b")]),
    "unfinished span": ("a `b\n<think>c</think>", [("text", "a `b\n<think>c</think>")]),
    "span ends with its paragraph": ("a `b\n\n<think>c</think>", [("text", "a `b\n\n"), ("thought", "c")]),
    "longer span": ("``a ` b\n<think>``", [("text", "``a ` b\n<think>``")]),
    "closed span": ("`a` ``b``\n<think>c</think>", [("text", "`a` ``b``\n"), ("thought", "c")]),
    "escaped backtick": ("a \\` b\n<think>c</think>", [("text", "a \\` b\n"), ("thought", "c")]),
    "escaped backslash": ("a \\\\` b\n<think>c</think>", [("text", "a \\\\` b\n<think>c</think>")]),
    "heading ends its span": ("# a ` b\n<think>c</think>", [("text", "# a ` b\n"), ("thought", "c")]),
    "fence": (
        "```\n<think>a</think>\n```\n<think>b</think>",
        [("text", "```\n<think>a</think>\n```\n"), ("thought", "b")],
    ),
    "fence with info": ("```html x\n<think>a\n```", [("text", "```html x\n<think>a\n```")]),
    "tildes": ("~~~ `x\n<think>a\n```\n<think>\n~~~\n", [("text", "~~~ `x\n<think>a\n```\n<think>\n~~~\n")]),
    "longer fence": ("````\n```\n<think>a\n````", [("text", "````\n```\n<think>a\n````")]),
    "unclosed fence": ("```\n\n<think>a</think>", [("text", "```\n\n<think>a</think>")]),
    "span of three backticks": ("```a``` b\n<think>c</think>", [("text", "```a``` b\n"), ("thought", "c")]),
    "fence in a list": ("- a\n  ```\n  <think>\n  ```\n", [("text", "- a\n  ```\n  <think>\n  ```\n")]),
    "fence on an item's line": ("1. ```\n   <think>\n   ```", [("text", "1. ```\n   <think>\n   ```")]),
    "fence ends with its item": ("- ```\n  a\n<think>b</think>", [("text", "- ```\n  a\n"), ("thought", "b")]),
    "fence in a quote": ("> ```\n> <think>\n\n<think>b</think>", [("text", "> ```\n> <think>\n\n"), ("thought", "b")]),
    "indented code in a list": ("- a\n\n      <think>", [("text", "- a\n\n      <think>")]),
    "line of a list item": ("- a\n\n  <think>b</think>", [("text", "- a\n\n"), ("thought", "b")]),
    "nested list": ("- a\n  - b\n\n        <think>", [("text", "- a\n  - b\n\n        <think>")]),
    "backticks in indented code": ("    a ` b\n<think>c</think>", [("text", "    a ` b\n"), ("thought", "c")]),
    "closer in code inside": ("<think>a\n```\n</think>b", [("thought", "a\n```"), ("text", "b")]),
    "openers do not nest": ("<think>a\n<think>b</think>c</think>", [("thought", "a\n<think>b"), ("text", "c</think>")]),
    "two in a row": ("<think>a</think>\n<think>b</think>c", [("thought", "a"), ("thought", "b"), ("text", "c")]),
    "code behind a closer": ("<think>a</think>\n    <think>", [("thought", "a"), ("text", "    <think>")]),
    "other tags": ("<thinking>a</thinking>\n<Think>b</Think>", [("text", "<thinking>a</thinking>\n<Think>b</Think>")]),
    "no thought": ("<think>\n\n</think>\n\nhi", [("text", "hi")]),
    "lone closer": ("a</think>b", [("text", "a</think>b")]),
    "windows lines": ("a\r\n<think>\r\nb\r\n</think>\r\nc", [("text", "a\r\n"), ("thought", "b"), ("text", "c")]),
    "wide characters": ("<think>思考 🧠👩‍🍳</think>答え 🍕", [("thought", "思考 🧠👩‍🍳"), ("text", "答え 🍕")]),
    "a beginning only": ("<thin", [("text", "<thin")]),
    "white space only": (" \n ", [("text", " \n ")]),
    "nothing": ("", []),
}
PREFILLED = {
    "lone closer": ("a\nb\n</think>\n\nc", [("thought", "a\nb"), ("text", "c")]),
    "opener all the same": ("\n<think>\na</think>c", [("thought", "a"), ("text", "c")]),
    "code before the closer": ("```\na</think>c", [("thought", "```\na"), ("text", "c")]),
    "tags behind it": (
        "a</think>b\n<think>c</think>d",
        [("thought", "a"), ("text", "b\n"), ("thought", "c"), ("text", "d")],
    ),
    "second closer": ("a</think>b</think>c", [("thought", "a"), ("text", "b</think>c")]),
    "closer at once": ("\n\n</think>\n\nc", [("text", "c")]),
    "nothing": ("", []),
}
ALL = [(text, False, want) for text, want in CASES.values()] + [(text, True, want) for text, want in PREFILLED.values()]
NAMES = [*CASES, *(f"prefilled, {name}" for name in PREFILLED)]


@pytest.mark.parametrize(("text", "prefilled", "want"), ALL, ids=NAMES)
def test_every_case_holds_under_every_cut_into_two_and_code_point_by_code_point(text, prefilled, want):
    assert cut(text, prefilled=prefilled) == (want, False)
    assert cut(*text, prefilled=prefilled) == (want, False)
    for place in range(len(text)):
        assert cut(text[:place], text[place:], prefilled=prefilled) == (want, False)


@pytest.mark.parametrize("text", ["<think>a", "<think>", "x\n<think>a\n</thin", "<think>a</think>b\n<think>\n"])
def test_reasoning_without_an_end_stays_reasoning_and_is_told(text):
    blocks, unclosed = cut(*text)
    assert unclosed
    assert (blocks, unclosed) == cut(text)
    assert all("<think>" not in block for _, block in blocks)


def test_a_prefilled_message_without_any_closer_stays_the_reasoning_it_was_streamed_as():
    assert cut("an ", "answer", prefilled=True) == ([("thought", "an answer")], True)
    assert cut("\n", prefilled=True) == ([], False)


MARKS = [
    "<think>",
    "</think>",
    "<",
    "/",
    "</thi",
    "<think",
    "think>",
    "`",
    "``",
    "```",
    "~~~",
    "- ",
    "1. ",
    "> ",
    "#",
    "\\",
]
SPACES = ["\n", "\n\n", "\r\n", " ", "    ", "\t"]
OTHERS = ["a", "b c", "🍕", "思", "\ud83d", "-", "9", " " * 70, "`" * 70, ">" * 210]
ATOMS = st.sampled_from([*MARKS, *SPACES, *OTHERS])


@settings(max_examples=1500, deadline=None)
@given(st.lists(ATOMS, max_size=30).map("".join), st.booleans(), st.integers())
def test_however_a_text_arrives_the_same_blocks_come_out(text, prefilled, seed):
    whole = cut(text, prefilled=prefilled)
    assert cut(*text, prefilled=prefilled) == whole
    chance, parts, rest = random.Random(seed), [], text
    while rest:
        size = chance.randint(1, 9)
        parts.append(rest[:size])
        rest = rest[size:]
    assert cut(*parts, prefilled=prefilled) == whole


@given(st.lists(ATOMS, max_size=30).map("".join))
def test_text_without_an_opener_comes_out_as_it_is(text):
    text = text.replace("<think>", "")
    while "<think>" in text:
        text = text.replace("<think>", "")
    assert cut(*text) == ([("text", text)] if text else [], False)


@settings(max_examples=300)
@given(st.lists(ATOMS, max_size=60).map("".join), st.booleans())
def test_no_more_than_a_line_start_is_ever_held_back(text, prefilled):
    tags = ThinkTags(prefilled=prefilled)
    for character in text:
        tags.feed(character)
        assert len(tags._held) + len(tags._blank) <= 400


def test_text_within_a_line_is_passed_on_at_once():
    tags = ThinkTags()
    assert tags.feed("Hello") == [Piece(False, 0, "Hello")]
    assert tags.feed(", 1 < 2") == [Piece(False, 0, ", 1 < 2")]


@pytest.mark.parametrize(
    "line", ["word " * 12 + "\n", "<x\n", "`\n", "- a\n", "\n", "<", "`", " ", "```\n", "</think\n"]
)
@pytest.mark.parametrize("opening", ["", "<think>", "```\n"])
def test_the_cost_of_a_token_does_not_grow_with_the_message(line, opening):
    """100,000 characters one by one and whole: a buffer that is searched again and again takes minutes."""
    text = opening + line * (100_000 // len(line))
    started = time.perf_counter()
    assert cut(text) == cut(*text)
    assert time.perf_counter() - started < 10
