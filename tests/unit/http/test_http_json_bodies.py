"""JSON in and out, with the values that break parsers."""

import asyncio
import contextlib
import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot_builtin_plugins.http_server.json_bodies import MAX_DEPTH, PARSE_IN_THREAD_BYTES, decode, encode, parse
from pizzabot_hookspecs import InvalidRequest


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_do_anything_but_parse_or_be_refused(body):
    with contextlib.suppress(InvalidRequest):
        parse(body)


@given(st.text(st.characters()))
def test_text_with_halves_of_pairs_is_read_from_escapes(text):
    assert parse(json.dumps(text).encode()) == json.loads(json.dumps(text))


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_whatever_is_written_can_be_read_back(value):
    assert json.loads(encode(value)) == json.loads(json.dumps(value))


def test_depth_has_a_limit_whichever_parser_reads_it():
    within, beyond = MAX_DEPTH, MAX_DEPTH + 1
    assert parse(b"[" * within + b"]" * within)
    for extra in (b"", b'"\\ud83d"'):
        with pytest.raises(InvalidRequest):
            parse(b"[" * beyond + extra + b"]" * beyond)


def test_many_brackets_beside_each_other_are_not_depth():
    assert len(parse(b"[" + b",".join([b"[]"] * 1000) + b"]")) == 1000


@pytest.mark.parametrize("number", [b"18446744073709551615", b"-9223372036854775808"])
def test_sixty_four_bits_stay_integers_in_both_parsers(number):
    assert parse(number) == int(number)
    assert parse(b'["\\ud83d", %s]' % number)[1] == int(number)


@pytest.mark.parametrize("number", [b"18446744073709551616", b"-9223372036854775809", b"9" * 400, b"1e999"])
def test_what_is_larger_becomes_a_float_or_is_refused_and_never_a_huge_integer(number):
    for body in (number, b'["\\ud83d", %s]' % number):
        try:
            value = parse(body)
        except InvalidRequest:
            continue
        found = value[1] if isinstance(value, list) else value
        assert isinstance(found, float)
        assert math.isfinite(found)


def test_a_large_body_is_parsed_beside_the_loop_with_the_same_result():
    body = json.dumps(["x" * PARSE_IN_THREAD_BYTES]).encode()
    assert asyncio.run(decode(body)) == json.loads(body)


def test_mappings_and_tuples_are_written_like_objects_and_lists():
    assert encode(MappingProxyType({"a": (1, 2), "b": frozenset({3})})) == b'{"a":[1,2],"b":[3]}'
    with pytest.raises(TypeError):
        encode(object())
