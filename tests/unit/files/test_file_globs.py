"""Globs and the search for a text: what they find, and that none takes long."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.host.files.globs import MAX_ALTERNATIVES, MAX_PATTERN, Glob
from pizzabot.host.files.text_search import MAX_LINE, MAX_SOUGHT, checked_text, matching_lines
from pizzabot_hookspecs import InvalidRequest


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("*.md", ["a.md", ".md", ".hidden.md"], ["a/b.md", "a.mdx", "a"]),
        ("**/*.md", ["a.md", "a/b.md", "a/b/c.md"], ["a.txt"]),
        ("/**/*.md", ["a.md"], []),
        ("docs/**", ["docs/a", "docs/a/b"], ["doc/a", "adocs/a"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a/b", "z", "a/zz"]),
        ("?.txt", ["a.txt", "é.txt"], ["ab.txt", ".txt"]),
        ("[a-c].txt", ["a.txt", "c.txt"], ["d.txt", "A.txt"]),
        ("[!a-c].txt", ["d.txt"], ["a.txt"]),
        ("[^a].txt", ["b.txt"], ["a.txt"]),
        ("[]x].txt", ["].txt", "x.txt"], ["y.txt"]),
        ("[a", ["[a"], ["a"]),
        ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.t"]),
        ("{a,b/{c,d}}.x", ["a.x", "b/c.x", "b/d.x"], ["c.x"]),
        ("{a}", ["{a}"], ["a"]),
        ("{a,", ["{a,"], ["a"]),
        ("**", ["a", "a/b"], []),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("メモ*", ["メモ1.md"], ["ノート"]),
        ("[[]...slug]/*", ["[...slug]/page.tsx"], ["s/page.tsx"]),
    ],
)
def test_a_glob_fits(pattern, fits, does_not):
    glob = Glob(pattern)
    assert [path for path in fits + does_not if glob.matches(path)] == fits


@pytest.mark.parametrize("pattern", ["", "x" * (MAX_PATTERN + 1), "{a,b}" * 7, "{" + "," * MAX_ALTERNATIVES + "}"])
def test_a_glob_that_is_too_much_is_refused(pattern):
    with pytest.raises(InvalidRequest) as caught:
        Glob(pattern)
    assert caught.value.code == "invalid_pattern"


def test_a_glob_that_would_go_back_for_ever_answers_at_once():
    started = time.perf_counter()
    assert not Glob("*a" * 200 + "b").matches("a" * 250)
    assert not Glob("**/a/" * 100 + "b").matches("/".join(["a"] * 500))
    assert time.perf_counter() - started < 2


@given(st.lists(st.sampled_from(["a", "b", "*", "?"]), min_size=1, max_size=8), st.text("ab", max_size=10))
def test_a_glob_of_one_name_is_the_regular_expression_it_looks_like(parts, name):
    expression = "".join({"*": "[^/]*", "?": "[^/]"}.get(part, part) for part in parts)
    if "".join(parts) != "**":
        assert Glob("".join(parts)).matches(name or "x") == bool(re.fullmatch(expression, name or "x"))


@given(st.lists(st.sampled_from(["**", "a", "b"]), min_size=1, max_size=6), st.lists(st.sampled_from("ab"), min_size=1))
def test_folders_of_a_glob_are_the_regular_expression_they_look_like(parts, names):
    expression = "".join("(?:[^/]+/)*" if part == "**" else f"{part}/" for part in parts)
    fits = re.fullmatch(expression, "".join(f"{name}/" for name in names))
    assert Glob("/".join(parts)).matches("/".join(names)) == bool(fits)


def lines(content, text):
    return [(found.line, found.text) for found in matching_lines("/x", content, checked_text(text))]


def test_a_line_is_found_once_with_its_number_and_without_its_end():
    assert lines(b"one\r\ntwo two\nthree\ntwo", "two") == [(2, "two two"), (4, "two")]
    assert lines("grüße\n".encode(), "üß") == [(1, "grüße")]
    assert lines(b"a.c\nabc", "a.c") == [(1, "a.c")]


def test_a_long_line_is_cut_at_1000_characters():
    ((number, text),) = lines(("é" * 5_000 + "needle\n").encode(), "needle")
    assert (number, text) == (1, "é" * MAX_LINE)


def test_a_file_that_is_not_text_has_no_lines():
    assert lines(b"needle\n\xff", "needle") == []
    assert lines(b"needle\n\0", "needle") == []


@pytest.mark.parametrize("text", ["", "x" * (MAX_SOUGHT + 1), "a\nb", "\ud800"])
def test_a_text_that_no_line_can_hold_is_refused(text):
    with pytest.raises(InvalidRequest) as caught:
        checked_text(text)
    assert caught.value.code == "invalid_text"


@given(st.lists(st.text("ab \r", max_size=5), max_size=8))
def test_lines_are_those_that_splitting_would_find(written):
    content = "\n".join(written)
    expected = [(number, line.removesuffix("\r")) for number, line in enumerate(written, 1) if "a" in line]
    assert lines(content.encode(), "a") == expected
