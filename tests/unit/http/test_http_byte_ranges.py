"""Ranges of a text's bytes: one of them, or the whole (RFC 9110)."""

import pytest

from pizzabot_builtin_plugins.http_server.byte_ranges import Conditions, part_of

TEXT = "0123é"
"""Six bytes."""
ETAG = part_of(TEXT, Conditions()).headers["etag"]


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=2-3", 2, 4),
        ("bytes=4-", 4, 6),
        ("bytes=-2", 4, 6),
        ("bytes=-99", 0, 6),
        ("bytes=5-99", 5, 6),
        (" BYTES=0-5 ", 0, 6),
    ],
)
def test_one_range_is_those_bytes_and_says_where_they_stand(asked, start, end):
    part = part_of(TEXT, Conditions(range=asked))
    assert (part.status, part.body) == (206, TEXT.encode()[start:end])
    assert part.headers["content-range"] == f"bytes {start}-{end - 1}/6"


@pytest.mark.parametrize("asked", ["bytes=6-", "bytes=6-9", "bytes=-0", "bytes=99-100"])
def test_a_range_in_which_nothing_lies_is_not_satisfiable(asked):
    part = part_of(TEXT, Conditions(range=asked))
    assert (part.status, part.body, part.headers["content-range"]) == (416, b"", "bytes */6")


@pytest.mark.parametrize(
    "asked",
    [None, "", "bytes=", "bytes=-", "bytes=3-2", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "bytes=" + "9" * 40],
)
def test_what_is_not_one_range_gets_the_whole(asked):
    part = part_of(TEXT, Conditions(range=asked))
    assert (part.status, part.body) == (200, TEXT.encode())
    assert part.headers["accept-ranges"] == "bytes"


def test_a_range_of_a_text_that_has_changed_gets_the_whole():
    assert part_of(TEXT, Conditions(range="bytes=0-0", if_range=ETAG)).status == 206
    assert part_of(f"{TEXT}!", Conditions(range="bytes=0-0", if_range=ETAG)).body == f"{TEXT}!".encode()


def test_a_text_that_the_client_has_is_not_sent_again():
    for names in (ETAG, f'"other", W/{ETAG}', "*"):
        assert part_of(TEXT, Conditions(if_none_match=names, range="bytes=0-0")).status == 304
    assert part_of(TEXT, Conditions(if_none_match='"other"')).status == 200


def test_nothing_is_a_text_too_and_half_a_surrogate_pair_breaks_none():
    assert part_of("", Conditions()).body == b""
    assert part_of("", Conditions(range="bytes=0-")).status == 416
    assert part_of("a\ud800b", Conditions()).body == b"a?b"
