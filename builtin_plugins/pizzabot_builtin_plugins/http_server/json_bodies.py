"""JSON in and out: orjson, and the standard library for the few texts that orjson refuses."""

from __future__ import annotations

import asyncio
import json
import math

import orjson

from pizzabot_hookspecs import InvalidRequest

MAX_DEPTH = 128
"""Arrays and objects inside each other. Deeper input would exhaust the stack of whoever walks it later."""
PARSE_IN_THREAD_BYTES = 64 * 1024
"""From here on a body is parsed beside the event loop."""

_INT64 = range(-(2**63), 2**64)


async def decode(body: bytes) -> object:
    """The parsed body. Raises `InvalidRequest` `invalid_json`, also for what is nested deeper than `MAX_DEPTH`."""
    if len(body) < PARSE_IN_THREAD_BYTES:
        return parse(body)
    return await asyncio.to_thread(parse, body)


def parse(body: bytes) -> object:
    """Like `decode`, in this thread. Integers beyond 64 bits come out as floats; NaN and Infinity are refused."""
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"\\u" not in body:
            raise _invalid(str(error)) from error
        value = _parse_with_lone_surrogates(body)
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    return value


def _parse_with_lone_surrogates(body: bytes) -> object:
    """JavaScript clients cut strings in the middle of a pair; orjson refuses half of one, the host cleans it."""
    try:
        value: object = json.loads(body, parse_int=_bounded_int, parse_float=_finite, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _invalid(str(error)) from error
    return value


def _bounded_int(digits: str) -> int | float:
    number = int(digits) if len(digits) < 21 else None
    return number if number is not None and number in _INT64 else _finite(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"a number of {len(digits)} characters is out of range")
    return number


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _invalid(f"nested deeper than {MAX_DEPTH} levels")


def _invalid(cause: str) -> InvalidRequest:
    return InvalidRequest("invalid_json", f"the body is not valid JSON: {cause}; send one JSON document in UTF-8")


def encode(value: object) -> bytes:
    """JSON bytes. What orjson refuses (half a surrogate pair, an integer over 64 bits) is written with escapes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=_plain)
    except orjson.JSONEncodeError:
        return json.dumps(value, default=_plain).encode()


def _plain(value: object) -> object:
    """Mappings and sequences that are neither dict nor list, as Protocols let them come."""
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118 - a Mapping by shape only
    if hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
