"""What `pizzabot chat` shows: the answer on stdout as it comes, notices on stderr, nothing that steers a terminal.

Where stdout is no terminal, a message is written once it is whole: one that broke off with the server and came again
is in a file once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pizzabot.client import Event

MAX_NOTICE_CHARS = 2_000
MAX_INPUT_SHOWN = 200
MAX_HELD_CHARS = 4_000_000
"""Of a message that is held back until it is whole; a longer one is written as it comes from there on."""

# C0 but for tab and line feed, DEL and C1 steer the terminal; the bidirectional controls make a line read as another.
_UNSAFE = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160), *range(8234, 8239), *range(8294, 8298)))


def safe(text: str) -> str:
    """`text` without the characters that a terminal obeys instead of showing them."""
    return text.translate(_UNSAFE)


def visible(text: str) -> str:
    """`text` in which everything that does not print is spelled out: nothing hides in what a person decides about."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text
    )


def one_line(text: str) -> str:
    shown = safe(" ".join(text.split()))
    return shown if len(shown) <= MAX_NOTICE_CHARS else shown[: MAX_NOTICE_CHARS - 1] + "…"


def may_dim(environ: Mapping[str, str]) -> bool:
    """Whether the terminal knows escapes, and nobody asked to leave them out (no-color.org)."""
    return environ.get("TERM", "dumb") != "dumb" and not environ.get("NO_COLOR")


class Screen:
    """stdout and stderr. `as_json` prints frames instead of text."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._json = as_json
        self._on_terminal = self._out.isatty()
        self._thoughts_shown = self._on_terminal and self._err.isatty()
        self._dim = ("\x1b[2m", "\x1b[22m") if may_dim(os.environ) else ("", "")
        self._message = ""
        self._at_line_start = True
        self._held: list[str] = []
        self._held_message = ""
        self._held_chars = 0
        self._cut = ""
        self._refused: set[str] = set()

    @property
    def can_ask(self) -> bool:
        """Whether a person sees a question and can answer it."""
        return not self._json and sys.stdin.isatty() and self._err.isatty()

    def decided(self, call_id: str, *, refused: bool) -> None:
        """What the person says of a call: a refusal comes back as an error of the tool, and is none."""
        (self._refused.add if refused else self._refused.discard)(call_id)

    def begin(self, thread_id: str, run_id: str) -> None:
        self._message, self._at_line_start, self._cut = "", True, ""
        if self._json:
            self._line({"type": "run", "thread_id": thread_id, "run_id": run_id})

    def frame(self, frame: Mapping[str, Any]) -> None:
        if self._json:
            self._line(frame)

    def event(self, event: Event) -> None:
        from pizzabot.client import Gap, MessageCut, ReasoningDelta, TextDelta, ToolFailed, ToolStarted

        if self._json:
            return
        if isinstance(event, TextDelta):
            self._text(event.text, event.message_id)
        elif isinstance(event, ReasoningDelta) and self._thoughts_shown:
            self._thought(event.text, event.message_id)
        elif isinstance(event, MessageCut):
            self._cut = event.reason
        elif isinstance(event, ToolStarted):
            self._release()
            self.notice(f"· {event.name} {json.dumps(event.input, ensure_ascii=False)[:MAX_INPUT_SHOWN]}")
        elif isinstance(event, ToolFailed):
            refused = event.call_id in self._refused
            self.notice("· not run: you refused it" if refused else f"· the tool failed: {event.message}")
            self._refused.discard(event.call_id)
        elif isinstance(event, Gap):
            self.notice(f"· events before number {event.earliest} are no longer kept")

    def end(self) -> None:
        """Write what was held back, and leave the cursor at the start of a line."""
        self._release()
        if not self._at_line_start and not self._json:
            self._write(self._out, "\n")

    def notice(self, text: str, *, as_it_is: bool = False) -> None:
        """A line for the person, beside the answer; `as_it_is` keeps the columns of a text of our own."""
        if self._on_terminal:
            self.end()
        with suppress(OSError, ValueError):  # nobody reads stderr: the answer counts
            print(text if as_it_is else one_line(text), file=self._err, flush=True)

    def read(self, prompt: str, prefilled: str = "") -> str:
        """A line of the person's, which may be edited. Raises `NotText`, EOFError and KeyboardInterrupt."""
        from pizzabot.cli.streams import text_of

        with _prefilled(prefilled):
            if self._on_terminal:
                return text_of(input(prompt))
            # The answers go elsewhere, and the prompt must not be among them.
            print(prompt, end="", file=self._err, flush=True)
            return text_of(input())

    def _text(self, text: str, message_id: str) -> None:
        self._say_if_anew()
        if self._on_terminal:
            self._paragraph(message_id)
            self._write(self._out, safe(text))
            return
        if message_id != self._held_message:
            self._release()
            self._held_message = message_id
        self._held.append(text)
        self._held_chars += len(text)
        if self._held_chars > MAX_HELD_CHARS:
            self._release()

    def _say_if_anew(self) -> None:
        """A message follows one that broke off: it stands in for it."""
        if self._cut:
            self._held, self._held_message, self._held_chars = [], "", 0
            self.notice(f"· {self._cut}: the answer begins anew")
            self._cut = ""

    def _release(self) -> None:
        if self._held:
            pieces, self._held, self._held_chars = self._held, [], 0
            self._paragraph(self._held_message)
            self._write(self._out, "".join(pieces))

    def _thought(self, text: str, message_id: str) -> None:
        self._say_if_anew()
        self._paragraph(f"thought of {message_id}")
        dim, normal = self._dim
        self._write(self._err, f"{dim}{safe(text)}{normal}", shown=text)

    def _paragraph(self, message_id: str) -> None:
        if self._message and self._message != message_id:
            if not self._at_line_start:
                self._write(self._out, "\n")
            self._write(self._out, "\n")
        self._message = message_id

    def _write(self, stream: TextIO, text: str, *, shown: str | None = None) -> None:
        stream.write(text)
        stream.flush()
        if text:
            self._at_line_start = (text if shown is None else shown).endswith("\n")

    def _line(self, value: Mapping[str, Any]) -> None:
        # ASCII: what steers a terminal arrives escaped, and every consumer reads it.
        self._out.write(json.dumps(value) + "\n")
        self._out.flush()


class _prefilled:  # noqa: N801 - reads as a function where it is used
    """While it is entered, the next line that is read begins with `text`, where the terminal can edit."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __enter__(self) -> None:
        if self._text and (readline := _readline()) is not None:
            readline.set_startup_hook(lambda: readline.insert_text(self._text))

    def __exit__(self, *_: object) -> None:
        if self._text and (readline := _readline()) is not None:
            readline.set_startup_hook(None)


def _readline() -> Any:
    """None in a Python without it: the terminal's own line editing is left."""
    try:
        import readline
    except ImportError:
        return None
    return readline
