"""Where the pieces of an answer come from: the model, or a recording."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_replay.messages import Stored, asked
from pizzabot_replay.tables import Recording

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

Pieces = AsyncGenerator[tuple[str, str], None]


async def from_model(model: ChosenModel, conversation: Sequence[Stored]) -> Pieces:
    """What the model says, as it says it. Raises what the model raises. Closing it ends the call."""
    messages = await asyncio.to_thread(asked, conversation)
    chunks: Any = model.chat.astream(messages)
    async with aclosing(chunks):
        async for chunk in chunks:
            for piece in _pieces(chunk):
                yield piece


async def from_recording(recording: Recording) -> Pieces:
    for piece in recording.pieces:
        # A long recording leaves the loop to others, and can be stopped, between two pieces.
        await asyncio.sleep(0)
        yield piece


def _pieces(chunk: AIMessageChunk) -> Iterable[tuple[str, str]]:
    """Text and reasoning of a chunk. Tools are not bound, so there is nothing else to be said."""
    if isinstance(chunk.content, str):
        return [("text", chunk.content)] if chunk.content else []
    found = ((str(block["type"]), block.get(block["type"])) for block in chunk.content_blocks)
    return [(kind, said) for kind, said in found if kind in ("text", "reasoning") and isinstance(said, str) and said]
