"""What may be a path of an area, and what a name says of a file."""

import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.host.files.media_types import OCTETS, is_binary_name, media_type
from pizzabot.host.files.paths import checked_path, is_below, joined, may_be_named, problem_of, relative, segments
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.files import MAX_PATH_BYTES

GOOD = [
    "/", "/a", "/a/b.md", "/[...slug]/page.tsx", "/a..b.txt", "/..a", "/a..", "/...", "/with space/ .x",
    "/100%", "/50%2foff",
    "/ファイル/メモ.md", "/مذكرة.txt", "/заметки", "/naïve", unicodedata.normalize("NFD", "/naïve"),
    "/🍕", "/%zz", "/%",
]  # fmt: skip
BAD = [
    "", "a", "a/b", "//", "/a//b", "/a/", "/.", "/..", "/a/../b", "/./a", "/a\\b", "\\a", "/a\0b", "/a\nb",
    "/a\x7f", "/a\x85b",
    "/%2e%2e", "/%2E%2e/a", "/%2e", "/.%2e", "/%252e%252e", "/a%2f..%2fb", "/..%5cb", "/%2e%2e%2fetc",
    "/a\ud800", "/%25252e%25252e",
]  # fmt: skip


@pytest.mark.parametrize("path", GOOD)
def test_a_name_in_any_script_is_a_path(path):
    assert checked_path(path) == path


@pytest.mark.parametrize("path", BAD)
def test_what_leads_elsewhere_or_cannot_be_shown_is_no_path(path):
    with pytest.raises(InvalidRequest) as caught:
        checked_path(path)
    assert caught.value.code == "invalid_path"
    assert "\n" not in caught.value.detail
    caught.value.detail.encode()


def test_a_path_has_at_most_1024_bytes():
    assert checked_path("/" + "é" * ((MAX_PATH_BYTES - 1) // 2))
    assert problem_of("/" + "é" * (MAX_PATH_BYTES // 2)) is not None


@given(st.text(max_size=40))
def test_a_checked_path_is_made_of_names_that_lead_nowhere_else(text):
    path = "/" + text
    if problem_of(path) is None:
        names = segments(path)
        assert "/" + "/".join(names) == path
        assert not {"", ".", ".."} & set(names)
        assert all(may_be_named(name) for name in names)


@given(st.lists(st.sampled_from(["..", ".", "a", "%2e", "%2E%2E", "..%2f", "b c"]), min_size=1, max_size=5))
def test_no_spelling_of_the_parent_folder_is_a_path(parts):
    path = "/" + "/".join(parts)
    assert (problem_of(path) is None) == all(part in {"a", "b c"} for part in parts)


@given(st.text(min_size=1, max_size=20).filter(lambda text: problem_of("/" + text) is None and "/" not in text))
def test_an_encoded_path_is_a_path_too_unless_it_hides_dots(name):
    assert problem_of("/" + quote(name, safe="")) is None


def test_paths_are_put_together_and_taken_apart():
    assert (joined("/", "a"), joined("/a", "b")) == ("/a", "/a/b")
    assert (relative("/a", "/"), relative("/a/b/c", "/a")) == ("a", "b/c")
    assert is_below("/a/b", "/a")
    assert is_below("/a", "/")
    assert not is_below("/ab", "/a")


def test_a_media_type_is_that_of_the_name_and_bytes_that_are_no_text_say_so():
    assert media_type("/a/photo.JPG") == "image/jpeg"
    assert media_type("README.md") == "text/markdown"
    assert media_type("Makefile") == media_type("a folder.d/zip") == "text/plain"
    assert media_type("notes.txt", b"\xff\xfe") == OCTETS
    assert media_type("notes.txt", "grüße".encode()) == "text/plain"
    assert media_type("photo.png", b"\xff") == "image/png"
    assert is_binary_name("/x/report.PDF")
    assert not is_binary_name("/x.zip/notes")
