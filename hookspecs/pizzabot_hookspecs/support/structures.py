"""Any value as plain JSON within bounds (spec/09 §5): for logs and lists, where a value of a stranger must not hurt."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

MAX_DEPTH = 8
MAX_TEXT_CHARS = 32_000
MAX_ITEMS = 100
MAX_KEYS = 100
_MAX_CAUSES = 4

TextRule = Callable[[str, int], str]
HiddenRule = Callable[[str, object], object | None]


def plain(value: object, *, text: TextRule, hidden: HiddenRule) -> Any:
    """`value` as None, bool, int, float, str, list and dict.

    `text(value, limit)` gives a string its shown form; `hidden(key, value)` what is shown instead of a value, or None.
    """
    return _Walk(text, hidden).value(value, 0)


class _Walk:
    def __init__(self, text: TextRule, hidden: HiddenRule) -> None:
        self._text = text
        self._hidden = hidden
        self._open: set[int] = set()  # ids of the containers around the current value

    def value(self, value: object, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return _number(value)
        if isinstance(value, str):
            return self._text(str(value), MAX_TEXT_CHARS)
        if isinstance(value, bytes | bytearray | memoryview):
            return f"<{len(value)} bytes>"
        if isinstance(value, BaseException | Mapping | list | tuple | set | frozenset):
            return self._container(value, depth)
        return self._text(_described(value), MAX_TEXT_CHARS)

    def _container(self, value: Any, depth: int) -> Any:
        if id(value) in self._open:
            return "<circular>"
        if depth >= MAX_DEPTH:
            return "<too deep>"
        self._open.add(id(value))
        try:
            if isinstance(value, BaseException):
                return self._error(value, depth)
            return self._mapping(value, depth) if isinstance(value, Mapping) else self._items(value, depth)
        finally:
            self._open.discard(id(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, inner in islice(value.items(), MAX_KEYS):
            name = key if isinstance(key, str) else _described(key)
            instead = self._hidden(name, inner)
            shown[self._text(name, 256)] = self.value(inner, depth + 1) if instead is None else instead
        if len(value) > MAX_KEYS:
            shown["…"] = f"[{len(value) - MAX_KEYS} more keys]"
        return shown

    def _items(self, value: Any, depth: int) -> list[Any]:
        shown = [self.value(inner, depth + 1) for inner in islice(value, MAX_ITEMS)]
        if len(value) > MAX_ITEMS:
            shown.append(f"…[{len(value) - MAX_ITEMS} more items]")
        return shown

    def _error(self, error: BaseException, depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "name": type(error).__name__,
            "message": self._text(_described(error), MAX_TEXT_CHARS),
            "stack": self._text("".join(traceback.format_tb(error.__traceback__, limit=-50)), MAX_TEXT_CHARS),
        }
        if isinstance(code := getattr(error, "code", None), str | int):
            shown["code"] = self.value(code, depth + 1)
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is not None and depth < _MAX_CAUSES:
            shown["cause"] = self.value(cause, depth + 1)
        return shown


def _number(value: object) -> Any:
    """Floats that JSON does not know as their names; integers beyond 64 bits, which encoders refuse, as text."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124 (NaN)
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        number = int(value)
        return number if -(2**63) <= number < 2**63 else f"<integer of {number.bit_length()} bits>"
    return value


def _described(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a stranger's __str__ must not stop a log line
        return f"<{type(value).__name__} that cannot be shown>"
