"""What an eval came to, in words for the model: console, then result or error, within one limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import (
    EVAL_SECONDS,
    MAX_RESULT_CHARACTERS,
    MEMORY_BYTES,
)
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.guest import Broken, End, Said
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.prelude import FIRST_LINE

_LINE = re.compile(r"eval_script:(\d+):")

LOST = "The sandbox was ended: variables of earlier evals are gone."
STUCK = "The code waits for a promise that nothing will settle."

_BROKEN = {
    Broken.STACK: "RangeError: the code called itself too deeply.",
    Broken.MEMORY: f"InternalError: out of memory; a sandbox has {MEMORY_BYTES // 2**20} MiB.",
    Broken.STOPPED: "The code was stopped.",
    Broken.FAULT: "InternalError: the sandbox failed.",
}


@dataclass(frozen=True)
class Outcome:
    """`text` is what the model reads; `failed` marks a result that is an error."""

    text: str
    failed: bool = False


def ended(said: Said, end: End, notes: Sequence[str] = ()) -> Outcome:
    """The guest came to an end by itself."""
    if end.thrown:
        line = next((found for found in map(int, _LINE.findall(end.stack)) if found <= FIRST_LINE), None)
        text = f"{end.text} (line {line})" if line else end.text
        if end.text.startswith("SyntaxError") and "Unexpected identifier" in end.text:
            text += ". There are no modules to import."
    else:
        text = end.text
    console = "".join(said.console)
    if not end.thrown and end.text == "undefined" and console:
        text = ""
    return Outcome(_joined(console, text, end.hidden, notes), failed=end.thrown)


def unfinished(said: Said, reason: str, notes: Sequence[str] = ()) -> Outcome:
    """It did not: `reason` says why."""
    return Outcome(_joined("".join(said.console), reason, 0, notes), failed=True)


def broken(said: Said, reason: Broken) -> Outcome:
    return unfinished(said, f"{_BROKEN[reason]} {LOST}")


def timed_out(said: Said) -> Outcome:
    return unfinished(said, f"TimeoutError: an eval has {EVAL_SECONDS:.0f} s, what it waits for included. {LOST}")


def _joined(console: str, text: str, hidden: int, notes: Sequence[str]) -> str:
    """Console and text, cut at the limit. Of both being too long, the text keeps at least half."""
    after = "".join(f"\n[{note}]" for note in notes)[: MAX_RESULT_CHARACTERS // 4]
    room = MAX_RESULT_CHARACTERS - len(after)
    separator = "\n" if console and text else ""
    if hidden or len(console) + len(text) + len(separator) > room:
        room -= 80  # for the note about what is left out
        kept_text = text[: max(room // 2, room - len(console) - 1)]
        kept_console = console[: room - len(kept_text) - len(separator)]
        hidden += len(text) - len(kept_text) + len(console) - len(kept_console)
        console, text = kept_console, kept_text
        after = f"\n[{hidden} characters are left out: {MAX_RESULT_CHARACTERS} are shown at most]{after}"
    whole = f"{console}{separator}{text}{after}"
    return (
        whole.replace("\0", "\\u0000").encode(errors="backslashreplace").decode()
    )  # what no store can hold, as escapes
