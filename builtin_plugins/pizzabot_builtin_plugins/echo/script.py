"""Reads the directives of a message into steps: what the model says, in which order and pace, and how it fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pizzabot_hookspecs import InvalidRequest

MAX_ANSWER_CHARS = 1_000_000
MAX_PACE_SECONDS = 10.0
MAX_DELAY_SECONDS = 600.0
MAX_TOOL_CALLS = 64
MAX_TOKENS = 1_000_000_000

_OPENING = re.compile(r"\[\[([a-z]+(?:-[a-z]+)*)(?=\s|\]\])")
_WORD = re.compile(r"\s*\S+\s*|\s+")


class ChunkUnit(StrEnum):
    WORDS = "words"
    CHARS = "chars"
    BYTES = "bytes"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedTool:
    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedError:
    """`after` is the number of chunks before it; `code` is passed on as the exception's `code`."""

    code: str
    message: str
    after: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One answer of the model. `pace` and `delay` are seconds; None means the settings decide."""

    text: str = ""
    scripted_text: str | None = None
    repeat: int = 1
    reasoning: str = ""
    tools: tuple[ScriptedTool, ...] = ()
    pace: float | None = None
    delay: float | None = None
    unit: ChunkUnit = ChunkUnit.WORDS
    size: int = 1
    usage: tuple[int, int] | None = None
    error: ScriptedError | None = None

    @property
    def answer(self) -> str:
        return self.scripted_text if self.scripted_text is not None else self.text


@dataclass(slots=True)
class _Reading:
    steps: list[Step] = field(default_factory=lambda: [Step()])
    found: bool = False

    def change(self, **values: Any) -> None:
        self.steps[-1] = replace(self.steps[-1], **values)


def parse(text: str) -> tuple[Step, ...]:
    """The steps of a message, at least one. Raises `InvalidRequest` `bad_directive` naming the directive."""
    reading = _Reading()
    position = 0
    while opening := _OPENING.search(text, position):
        handler = _DIRECTIVES.get(opening[1])
        if handler is None:
            _plain(reading, text[position : opening.end()])
            position = opening.end()
            continue
        _plain(reading, text[position : opening.start()])
        body, position = _body(text, opening)
        reading.found = True
        handler(reading, body)
    _plain(reading, text[position:])
    steps = tuple(reading.steps)
    if reading.found:
        steps = tuple(replace(step, text=step.text.strip()) for step in steps)
    return tuple(_repeated(step) for step in steps)


def chunks(text: str, unit: ChunkUnit = ChunkUnit.WORDS, size: int = 1) -> Iterator[str]:
    """`text` in pieces that concatenate to it exactly."""
    if unit is ChunkUnit.WORDS:
        yield from (match[0] for match in _WORD.finditer(text))
    elif unit is ChunkUnit.CHARS:
        yield from (text[start : start + size] for start in range(0, len(text), size))
    else:
        yield from _byte_chunks(text, size)


def _byte_chunks(text: str, size: int) -> Iterator[str]:
    piece, used = "", 0
    for character in text:
        width = len(character.encode("utf-8", "surrogatepass"))
        if piece and used + width > size:
            yield piece
            piece, used = "", 0
        piece += character
        used += width
    if piece:
        yield piece


def _plain(reading: _Reading, text: str) -> None:
    reading.change(text=reading.steps[-1].text + text)


def _body(text: str, opening: re.Match[str]) -> tuple[str, int]:
    """The argument of a directive and where the text goes on, behind the whitespace that follows the directive."""
    start = opening.end()
    end = _tool_end(text, start) if opening[1] == "tool" else text.find("]]", start)
    if end < 0:
        raise _bad(opening[1], "is not closed by ]]")
    following = re.compile(r"\s*").match(text, end + 2)
    return text[start:end].strip(), following.end() if following else end + 2


def _tool_end(text: str, start: int) -> int:
    """Where a tool directive closes: behind its JSON, which may hold ]] itself."""
    brace, close = text.find("{", start), text.find("]]", start)
    if brace < 0 or close < brace:
        return close
    try:
        _, end = json.JSONDecoder().raw_decode(text, brace)
    except (ValueError, RecursionError) as cause:
        raise _bad("tool", f"has arguments that are not a JSON object: {cause}") from cause
    return text.find("]]", end)


def _repeated(step: Step) -> Step:
    size = step.repeat * (len(step.answer) + 1)
    if size > MAX_ANSWER_CHARS + 1:
        raise _bad("repeat", f"makes {size} characters; at most {MAX_ANSWER_CHARS} are answered")
    if step.repeat == 1:
        return step
    return replace(step, scripted_text=" ".join([step.answer] * step.repeat), repeat=1)


def _seconds(name: str, body: str, limit: float) -> float:
    try:
        value = float(body)
    except ValueError:
        raise _bad(name, f"wants a number of seconds, not {body!r:.80}") from None
    if not 0 <= value <= limit:
        raise _bad(name, f"wants 0 to {limit:g} seconds, not {body:.80}")
    return value


def _count(name: str, body: str, limit: int, *, least: int = 1) -> int:
    if not (body.isascii() and body.isdigit()) or not least <= int(body[:20]) <= limit:
        raise _bad(name, f"wants a whole number from {least} to {limit}, not {body!r:.80}")
    return int(body)


def _pace(reading: _Reading, body: str) -> None:
    reading.change(pace=_seconds("pace", body, MAX_PACE_SECONDS))


def _delay(reading: _Reading, body: str) -> None:
    reading.change(delay=_seconds("delay", body, MAX_DELAY_SECONDS))


def _chunk(reading: _Reading, body: str) -> None:
    unit, _, size = body.partition(" ")
    if unit not in (ChunkUnit.CHARS, ChunkUnit.BYTES):
        raise _bad("chunk", f"wants `chars` or `bytes` and a number, not {body!r:.80}")
    reading.change(unit=ChunkUnit(unit), size=_count("chunk", size.strip(), MAX_ANSWER_CHARS))


def _text(reading: _Reading, body: str) -> None:
    reading.change(scripted_text=(reading.steps[-1].scripted_text or "") + body)


def _repeat(reading: _Reading, body: str) -> None:
    reading.change(repeat=_count("repeat", body, MAX_ANSWER_CHARS))


def _reasoning(reading: _Reading, body: str) -> None:
    reading.change(reasoning=body)


def _tool(reading: _Reading, body: str) -> None:
    name, _, arguments = body.partition(" ")
    try:
        args = json.loads(arguments or "{}")
    except ValueError as cause:
        raise _bad("tool", f"has arguments that are not a JSON object: {cause}") from cause
    if not name or not isinstance(args, dict):
        raise _bad("tool", "wants a name and a JSON object of arguments")
    tools = (*reading.steps[-1].tools, ScriptedTool(name=name, args=args))
    if len(tools) > MAX_TOOL_CALLS:
        raise _bad("tool", f"appears more than {MAX_TOOL_CALLS} times in one step")
    reading.change(tools=tools)


def _then(reading: _Reading, body: str) -> None:
    if body:
        raise _bad("then", "takes no argument")
    last = reading.steps[-1]
    reading.steps.append(Step(pace=last.pace, delay=last.delay, unit=last.unit, size=last.size))


def _usage(reading: _Reading, body: str) -> None:
    numbers = body.split()
    if len(numbers) != 2:
        raise _bad("usage", "wants the input and the output tokens")
    given, made = (_count("usage", number, MAX_TOKENS, least=0) for number in numbers)
    reading.change(usage=(given, made))


def _error(reading: _Reading, body: str) -> None:
    code, _, message = body.partition(" ")
    if not code:
        raise _bad("error", "wants a code and a message")
    reading.change(error=ScriptedError(code=code, message=message.strip() or f"scripted {code}"))


def _error_after(reading: _Reading, body: str) -> None:
    number, _, rest = body.partition(" ")
    after = _count("error-after", number, MAX_ANSWER_CHARS, least=0)
    _error(reading, rest.strip())
    error = reading.steps[-1].error
    if error is not None:
        reading.change(error=replace(error, after=after))


def _bad(name: str, reason: str) -> InvalidRequest:
    return InvalidRequest("bad_directive", f"the echo directive [[{name}]] {reason}")


_DIRECTIVES: dict[str, Callable[[_Reading, str], None]] = {
    "pace": _pace,
    "delay": _delay,
    "chunk": _chunk,
    "text": _text,
    "repeat": _repeat,
    "reasoning": _reasoning,
    "tool": _tool,
    "then": _then,
    "usage": _usage,
    "error": _error,
    "error-after": _error_after,
}
