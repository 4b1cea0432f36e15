"""Standard input, output and error as a command finds them: closed, full, or of an encoding that lacks characters."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress
from typing import TextIO

_ESCAPE = "pizzabot.escape"


class OutputError(OSError):
    """Standard output cannot be written: the disk behind it is full, say."""


class _StandardOutput(io.TextIOWrapper):
    """Says of an error that it is the output's: an `OSError` alone does not tell which file it means."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:  # a reader that went away is no failure
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


def prepare() -> bool:
    """Make the three streams usable for any text; whether somebody reads standard output at all.

    A closed one becomes the null device, also below Python: else the next file that is opened would be number 1, and
    whatever a library or a child prints would go into it.
    """
    listened = sys.stdout is not None and _is_open(1)
    for number in (0, 1, 2):
        if not _is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - for children, too
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
    elif isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # `text_of` says what is no text, instead of a crash
    sys.stdout = _able(sys.stdout, 1)
    sys.stderr = _able(sys.stderr, 2)
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _telling(sys.stdout)
    return listened


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _able(stream: TextIO | None, number: int) -> TextIO:
    """The stream, from now on never failing for want of a character."""
    if stream is None:
        return open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    if isinstance(stream, io.TextIOWrapper):
        utf8 = codecs.lookup(stream.encoding).name == "utf-8"
        if not utf8:
            codecs.register_error(_ESCAPE, _escape)
        stream.reconfigure(errors="backslashreplace" if utf8 else _ESCAPE)
    return stream


def _telling(stream: io.TextIOWrapper) -> TextIO:
    with suppress(OSError, ValueError):  # a stream without a descriptor stays as it is
        if stream.fileno() == 1:
            return _StandardOutput(
                stream.buffer,
                encoding=stream.encoding,
                errors=stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
    return stream


def _escape(error: UnicodeError) -> tuple[bytes, int]:
    r"""In a plain locale: a name's own bytes as they came (`surrogateescape`), any other character as `\xe4`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    pieces = [
        bytes([ord(character) - 0xDC00])
        if "\udc80" <= character <= "\udcff"
        else character.encode("ascii", "backslashreplace")
        for character in error.object[error.start : error.end]
    ]
    return b"".join(pieces), error.end


class NotText(ValueError):
    """What came is not text in UTF-8; the message says which byte."""


def text_of(word: str) -> str:
    """A word of the command line or a line of the prompt. Raises `NotText`.

    In a plain locale (`LC_ALL=C`) Python hands over the bytes of UTF-8 as surrogates; they are read as what they are.
    """
    try:
        word.encode()
    except UnicodeEncodeError:
        try:
            return _utf8(os.fsencode(word))
        except UnicodeEncodeError as error:
            raise NotText("it is not text in UTF-8") from error
    return word


def read_text(stream: TextIO, max_chars: int) -> str:
    """At most `max_chars` + 1 characters of a stream, in UTF-8 or else in the locale's encoding. Raises `NotText`."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        return stream.read(max_chars + 1)
    raw: bytes = buffer.read(4 * (max_chars + 1))
    try:
        text = _utf8(raw)
    except NotText:
        if codecs.lookup(stream.encoding).name in ("utf-8", "ascii"):
            raise
        text = raw.decode(stream.encoding, "replace")
    text = text.replace("\r\n", "\n")
    return text[: max_chars + 1]


def _utf8(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"byte 0x{raw[error.start]:02x} at place {error.start + 1}"
        raise NotText(f"it is not text in UTF-8 ({place})") from error
