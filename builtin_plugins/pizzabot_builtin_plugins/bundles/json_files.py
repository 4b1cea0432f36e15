"""`JsonFile`: a JSON object out of a bundle, read strictly, that can say in which line a key stands.

A BOM and CRLF are taken. A key that is written twice, NaN and half a surrogate pair are faults: whatever was meant by
them, something would be lost without a word.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from pizzabot_builtin_plugins.bundles.faults import BundleFaultError

MAX_JSON_BYTES = 1024 * 1024
"""Of a manifest, and of a file of MCP servers."""

_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class JsonFile:
    """`values` is the object, `name` the file's path inside the bundle."""

    def __init__(self, name: str, text: str, values: dict[str, Any]) -> None:
        self.name = name
        self.values = values
        self._text = text

    @classmethod
    def read(cls, path: Path, name: str) -> JsonFile:
        """Raises `BundleFaultError`."""
        return cls.parse(read_bytes(path, name, MAX_JSON_BYTES), name)

    @classmethod
    def parse(cls, raw: bytes, name: str) -> JsonFile:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise BundleFaultError("it is not UTF-8 text", file=name, line=line) from error
        try:
            values = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
            json.dumps(values, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            reason = f"it is not JSON: {error.msg} in column {error.colno}"
            raise BundleFaultError(reason, file=name, line=error.lineno) from error
        except _TwiceError as error:
            line = _line(text, _last_key(text, error.key))
            raise BundleFaultError(f"the key {error.key[:80]!r} stands in it twice", file=name, line=line) from error
        except UnicodeEncodeError as error:
            raise BundleFaultError("it has half of a surrogate pair in a text", file=name) from error
        except (RecursionError, ValueError) as error:
            raise BundleFaultError(f"it cannot be read: {error or type(error).__name__}", file=name) from error
        if not isinstance(values, dict):
            raise BundleFaultError("it has to be an object", file=name, line=1)
        return cls(name, text, values)

    def line(self, *keys: str) -> int | None:
        """Where the last of the keys stands, each looked for behind the one before."""
        at = 0
        for key in keys:
            found = _key(key).search(self._text, at)
            if found is None:
                break
            at = found.start()
        return _line(self._text, at)

    def fault(self, reason: str, *keys: str) -> BundleFaultError:
        return BundleFaultError(reason, file=self.name, line=self.line(*keys))


def read_bytes(path: Path, name: str, most: int) -> bytes:
    """A regular file of at most `most` bytes. Raises `BundleFaultError`."""
    try:
        with open(os.open(path, _OPEN), "rb") as file:  # noqa: PTH123 - a descriptor
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BundleFaultError("it is no file", file=name)
            raw = file.read(most + 1)
    except OSError as error:
        raise BundleFaultError(f"it cannot be read: {error.strerror or error}", file=name) from error
    if len(raw) > most:
        raise BundleFaultError(f"it has more than {most} bytes", file=name)
    return raw


class _TwiceError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise _TwiceError(key)
        values[key] = value
    return values


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _key(key: str) -> re.Pattern[str]:
    return re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:")


def _last_key(text: str, key: str) -> int:
    places = [found.start() for found in _key(key).finditer(text)]
    return places[-1] if places else 0


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
