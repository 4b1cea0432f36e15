"""Cuts inline reasoning out of LangChain's messages and chunks: text becomes blocks, all else stays as it is.

A block's `index` is a text: numbers are those of tool calls and of the blocks that a provider makes itself. LangChain
merges pieces of one index where it is a number or begins with `lc_`. Imported with `cutting_model`, never before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage  # noqa: TID253
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult  # noqa: TID253

from pizzabot.host.models.think_tags import Piece, ThinkTags
from pizzabot_hookspecs.model_providers import InlineReasoning

UNCLOSED = {"pizzabot": {"unclosed_reasoning": True}}
"""In `response_metadata` of a message whose reasoning had no end: the answer may be in there."""


class MessageCutter:
    """The chunks of one message. `feed` each, then `close`."""

    def __init__(self, inline_reasoning: InlineReasoning) -> None:
        self._tags = ThinkTags(prefilled=inline_reasoning is InlineReasoning.PREFILLED)
        self._id: str | None = None
        self._told = False

    def feed(self, chunk: ChatGenerationChunk) -> Iterator[ChatGenerationChunk]:
        """`chunk` itself with its text as blocks, behind or before one more where it holds more than text.

        LangChain reads the pieces of a tool call only in a chunk without content, and the blocks of a provider that it
        knows in that provider's own way.
        """
        message = chunk.message
        if not isinstance(message, AIMessageChunk):
            yield chunk
            return
        self._id = message.id or self._id
        texts, others = _parts(message)
        pieces = [piece for text in texts for piece in self._tags.feed(text)]
        last = message.chunk_position == "last"
        if last:
            pieces += self._tags.close()
            yield from self._notice()
        calls = bool(message.tool_call_chunks or message.tool_calls or message.invalid_tool_calls)
        if not (others or calls or message.additional_kwargs or message.response_metadata):
            _fill(chunk, message, pieces)
            yield chunk
            return
        message.content = others or ""
        chunk.text = ""
        if not (calls or last):
            yield chunk
        if pieces:
            yield _chunk([_block(piece) for piece in pieces], self._id)
        if calls or last:
            yield chunk

    def close(self) -> Iterator[ChatGenerationChunk]:
        """What was held back, and the notice where the reasoning is unclosed."""
        if pieces := self._tags.close():
            yield _chunk([_block(piece) for piece in pieces], self._id)
        yield from self._notice()

    def _notice(self) -> Iterator[ChatGenerationChunk]:
        if self._tags.unclosed and not self._told:
            self._told = True
            yield _chunk([], self._id, response_metadata=_notice())


def cut_result(result: ChatResult, inline_reasoning: InlineReasoning) -> ChatResult:
    """A whole answer, as its stream would have added up."""
    made = [_cut_generation(generation, inline_reasoning) for generation in result.generations]
    return ChatResult(generations=made, llm_output=result.llm_output)


def chunk_of(result: ChatResult) -> ChatGenerationChunk:
    """A whole answer as the one chunk of a stream."""
    (generation, *_) = result.generations
    message = generation.message
    fields = {name: getattr(message, name) for name in ("id", "name", "additional_kwargs", "response_metadata")}
    if isinstance(message, AIMessage):
        fields |= {name: getattr(message, name) for name in ("tool_calls", "invalid_tool_calls", "usage_metadata")}
    chunk = AIMessageChunk(content=message.content, chunk_position="last", **fields)
    return ChatGenerationChunk(message=chunk, generation_info=generation.generation_info)


def _cut_generation(generation: ChatGeneration, inline_reasoning: InlineReasoning) -> ChatGeneration:
    message = generation.message
    if not isinstance(message, AIMessage):
        return generation
    tags = ThinkTags(prefilled=inline_reasoning is InlineReasoning.PREFILLED)
    blocks: list[str | dict[str, Any]] = []
    by_number: dict[int, dict[str, Any]] = {}
    for part in _content(message):
        text = _text(part)
        if text is None:
            blocks.append(part)
        else:
            _join(blocks, by_number, tags.feed(text))
    _join(blocks, by_number, tags.close())
    metadata = {**message.response_metadata, **(_notice() if tags.unclosed else {})}
    cut = message.model_copy(update={"content": blocks, "response_metadata": metadata})
    return ChatGeneration(message=cut, generation_info=generation.generation_info)


def _join(blocks: list[str | dict[str, Any]], by_number: dict[int, dict[str, Any]], pieces: list[Piece]) -> None:
    for piece in pieces:
        block = by_number.get(piece.block)
        if block is None:
            by_number[piece.block] = block = _block(piece)
            blocks.append(block)
        else:
            block[block["type"]] += piece.text


def _block(piece: Piece) -> dict[str, Any]:
    kind = "reasoning" if piece.reasoning else "text"
    return {"type": kind, kind: piece.text, "index": f"lc_inline_{piece.block}"}


def _notice() -> dict[str, Any]:
    return {key: dict(value) for key, value in UNCLOSED.items()}


def _content(message: BaseMessage) -> list[str | dict[str, Any]]:
    content = message.content
    return [content] if isinstance(content, str) else content


def _text(part: str | dict[str, Any]) -> str | None:
    """The text of a part of a content; None where it is something else."""
    if isinstance(part, str):
        return part
    text = part.get("text")
    return text if part.get("type") == "text" and isinstance(text, str) else None


def _parts(message: AIMessageChunk) -> tuple[list[str], list[str | dict[str, Any]]]:
    content = message.content
    if isinstance(content, str):
        return [content], []
    return (
        [text for part in content if (text := _text(part)) is not None],
        [part for part in content if _text(part) is None],
    )


def _fill(chunk: ChatGenerationChunk, message: AIMessageChunk, pieces: list[Piece]) -> None:
    message.content = [_block(piece) for piece in pieces] if pieces else ""
    chunk.text = "".join(piece.text for piece in pieces if not piece.reasoning)


def _chunk(
    blocks: list[str | dict[str, Any]], message_id: str | None, *, response_metadata: dict[str, Any] | None = None
) -> ChatGenerationChunk:
    message = AIMessageChunk(content=blocks or "", id=message_id, response_metadata=response_metadata or {})
    return ChatGenerationChunk(message=message)
