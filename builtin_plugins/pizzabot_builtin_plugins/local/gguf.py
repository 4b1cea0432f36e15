"""Reads the header of a GGUF file: what the model is, how long its context is, whether its template knows tools.

Only the front of the file is read, never the weights. Every length in the file is checked against a bound before it
is believed: the file may come from anywhere. Format: ggml `docs/gguf.md`, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from pizzabot_hookspecs import InvalidRequest

MAGIC = b"GGUF"
MAX_HEADER_BYTES = 128 * 1024 * 1024
MAX_PAIRS = 10_000
MAX_TENSORS = 200_000
MAX_ELEMENTS = 4_000_000
MAX_KEY_BYTES = 65_535
MAX_TEXT_BYTES = 4 * 1024 * 1024
"""A chat template is the longest text that is kept; real ones have up to 20 kB."""

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufHeader:
    """What the file says of itself. `context_length` is tokens; None where the file does not say."""

    architecture: str | None
    name: str | None
    context_length: int | None
    chat_template: str | None
    parts: int

    @property
    def supports_tools(self) -> bool:
        """Whether the chat template lays out tools; a file without a template has no words for them."""
        return self.chat_template is not None and "tools" in self.chat_template


def read_header(path: Path) -> GgufHeader:
    """The header of the file at `path`; about 0.1 s for a large vocabulary, so call it in a thread.

    Raises `InvalidRequest` `not_a_model` when it is not a readable GGUF file, and says what is wrong with it.
    """
    try:
        with path.open("rb") as file:
            values = _Reader(file, path).metadata()
    except OSError as error:
        raise InvalidRequest("not_a_model", f"{path} cannot be read: {error.strerror}. Name a GGUF file") from error
    architecture = _text(values.get("general.architecture"))
    return GgufHeader(
        architecture=architecture,
        name=_text(values.get("general.name")),
        context_length=_positive(values.get(f"{architecture}.context_length")),
        chat_template=_text(values.get("tokenizer.chat_template")),
        parts=_positive(values.get("split.count")) or 1,
    )


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) and value else None


def _positive(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


class _Reader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._left = MAX_HEADER_BYTES

    def metadata(self) -> dict[str, Value]:
        if self._take(4) != MAGIC:
            raise self._bad("it does not begin with GGUF")
        version = self._number("I")
        if version not in {2, 3}:
            raise self._bad(f"its format version is {version}, not 2 or 3")
        tensors, pairs = self._number("Q"), self._number("Q")
        if pairs > MAX_PAIRS:
            raise self._bad(f"it claims {pairs} metadata entries, more than {MAX_PAIRS}")
        values = dict(self._pair() for _ in range(pairs))
        self._check_complete(tensors)
        return values

    def _check_complete(self, tensors: int) -> None:
        """The table of tensors says where each begins: the file must reach beyond the last of them."""
        if tensors > MAX_TENSORS:
            raise self._bad(f"it claims {tensors} tensors, more than {MAX_TENSORS}")
        last = max((self._tensor_offset() for _ in range(tensors)), default=-1)
        size = os.fstat(self._file.fileno()).st_size
        if self._file.tell() + last >= size:
            raise self._bad(
                f"it ends after {size} bytes, before its weights do; it was not copied or fetched completely"
            )

    def _tensor_offset(self) -> int:
        self._string(MAX_KEY_BYTES)
        dimensions = self._number("I")
        if dimensions > 8:
            raise self._bad(f"it claims a tensor of {dimensions} dimensions")
        self._take(8 * dimensions + 4)
        return self._number("Q")

    def _pair(self) -> tuple[str, Value]:
        key = self._string(MAX_KEY_BYTES)
        return key, self._value(self._number("I"), depth=0)

    def _value(self, kind: int, *, depth: int) -> Value:
        if kind == _TEXT:
            return self._string(MAX_TEXT_BYTES)
        if kind == _ARRAY:
            self._skip_array(depth=depth)
            return None
        if kind not in _SCALARS:
            raise self._bad(f"it holds a value of unknown type {kind}")
        value: Value = struct.unpack("<" + _SCALARS[kind], self._take(struct.calcsize("<" + _SCALARS[kind])))[0]
        return value

    def _skip_array(self, *, depth: int) -> None:
        kind, count = self._number("I"), self._number("Q")
        if count > MAX_ELEMENTS or depth > 4:
            raise self._bad(f"it claims a list of {count} elements, more than {MAX_ELEMENTS}, or lists too deep")
        if kind in _SCALARS:
            self._skip(count * struct.calcsize("<" + _SCALARS[kind]))
            return
        for _ in range(count):
            if kind == _TEXT:
                self._skip(self._number("Q"))
            else:
                self._value(kind, depth=depth + 1)

    def _string(self, limit: int) -> str:
        length = self._number("Q")
        if length > limit:
            raise self._bad(f"it claims a text of {length} bytes, more than {limit}")
        return self._take(length).decode("utf-8", "replace")

    def _number(self, code: str) -> int:
        number: int = struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))[0]
        return number

    def _take(self, count: int) -> bytes:
        self._spend(count)
        data = self._file.read(count)
        if len(data) != count:
            raise self._bad("it ends within its header; it was not copied or fetched completely")
        return data

    def _skip(self, count: int) -> None:
        # Short texts (a vocabulary has 50,000 to 250,000) are read, not seeked over: a seek drops the read buffer.
        if count <= 4096:
            self._take(count)
            return
        self._spend(count)
        self._file.seek(count, 1)

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise self._bad(f"its header has more than {MAX_HEADER_BYTES} bytes")

    def _bad(self, reason: str) -> InvalidRequest:
        return InvalidRequest("not_a_model", f"{self._path} is not a usable GGUF file: {reason}")
