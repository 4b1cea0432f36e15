"""What `pizzabot chat` shows: the answer on stdout as it comes, notices on stderr, nothing that steers a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pizzabot.client import Event

MAX_NOTICE_CHARS = 2_000
MAX_INPUT_SHOWN = 200

# C0 but for tab and line feed, DEL and C1 steer the terminal; the bidirectional controls make a line read as another.
_UNSAFE = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160), *range(8234, 8239), *range(8294, 8298)))


def safe(text: str) -> str:
    """`text` without the characters that a terminal obeys instead of showing them."""
    return text.translate(_UNSAFE)


def one_line(text: str) -> str:
    shown = safe(" ".join(text.split()))
    return shown if len(shown) <= MAX_NOTICE_CHARS else shown[: MAX_NOTICE_CHARS - 1] + "…"


class Screen:
    """stdout and stderr. `as_json` prints frames instead of text."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._json = as_json
        self._on_terminal = self._out.isatty()
        self._thoughts_shown = self._on_terminal and self._err.isatty()
        self._message = ""
        self._at_line_start = True
        for stream in (self._out, self._err):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")

    @property
    def on_terminal(self) -> bool:
        return self._on_terminal

    def begin(self, thread_id: str, run_id: str) -> None:
        self._message, self._at_line_start = "", True
        if self._json:
            self._line({"type": "run", "thread_id": thread_id, "run_id": run_id})

    def frame(self, frame: Mapping[str, Any]) -> None:
        if self._json:
            self._line(frame)

    def event(self, event: Event) -> None:
        from pizzabot.client import ApprovalNeeded, Gap, ReasoningDelta, TextDelta, ToolFailed, ToolStarted

        if self._json:
            return
        if isinstance(event, TextDelta):
            self._text(event.text, event.message_id)
        elif isinstance(event, ReasoningDelta) and self._thoughts_shown:
            self._thought(event.text, event.message_id)
        elif isinstance(event, ToolStarted):
            self.notice(f"· {event.name} {json.dumps(event.input, ensure_ascii=False)[:MAX_INPUT_SHOWN]}")
        elif isinstance(event, ToolFailed):
            self.notice(f"· the tool failed: {event.message}")
        elif isinstance(event, ApprovalNeeded):
            self.notice("· the assistant asks for an approval; answer it in another client")
        elif isinstance(event, Gap):
            self.notice(f"· events before number {event.earliest} are no longer kept")

    def end(self) -> None:
        """Leave the cursor at the start of a line."""
        if not self._at_line_start and not self._json:
            self._write(self._out, "\n")

    def notice(self, text: str, *, as_it_is: bool = False) -> None:
        """A line for the person, beside the answer; `as_it_is` keeps the columns of a text of our own."""
        if self._on_terminal:
            self.end()
        print(text if as_it_is else one_line(text), file=self._err, flush=True)

    def _text(self, text: str, message_id: str) -> None:
        self._paragraph(message_id)
        self._write(self._out, safe(text) if self._on_terminal else text)

    def _thought(self, text: str, message_id: str) -> None:
        self._paragraph(f"thought of {message_id}")
        self._write(self._err, f"\x1b[2m{safe(text)}\x1b[22m", shown=text)

    def _paragraph(self, message_id: str) -> None:
        if self._message and self._message != message_id:
            self.end()
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
