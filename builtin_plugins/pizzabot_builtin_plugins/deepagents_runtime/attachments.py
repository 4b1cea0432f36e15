# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Attachments as a model is handed them: in the place of their reference, for one call, on copies (spec/05 §3.7).

Text goes in as text, which every model reads; images and documents as standard content blocks. The checkpoint keeps the
reference alone. What cannot be had, or not be shown to this model, is named in words.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage

from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools, turn_in
from pizzabot_hookspecs import PizzabotError
from pizzabot_hookspecs.files import AttachedFile

SCHEME = "attachment://"
MAX_TEXT = 200_000
"""Characters of an attached text that go into a call; what is left out is said."""
MAX_KEPT_BYTES = 32 * 1024 * 1024
"""Blocks that a turn keeps between its calls; others are made anew."""

Block = dict[str, Any]


class Inlined(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        if not any(_refers(message) for message in request.messages):
            return await handler(request)
        turn = turn_in(request.runtime.context)
        return await handler(request.override(messages=await inlined(request.messages, turn)))


async def inlined(messages: Sequence[AnyMessage], turn: TurnTools | None) -> list[AnyMessage]:
    """`messages` with every reference replaced; those without one are the same objects."""
    return [await _inlined(message, turn) if _refers(message) else message for message in messages]


async def _inlined(message: AnyMessage, turn: TurnTools | None) -> AnyMessage:
    content = cast("list[Any]", message.content)
    blocks: list[Any] = [await _block(block, turn) if _is_reference(block) else block for block in content]
    if not any(isinstance(block, str) or block.get("type") == "text" for block in blocks):
        blocks.insert(0, {"type": "text", "text": "Attached:"})  # Bedrock refuses a document without a text
    return message.model_copy(update={"content": blocks})


async def _block(reference: Block, turn: TurnTools | None) -> Block:
    attachment_id = reference["url"].removeprefix(SCHEME)
    known = None if turn is None else turn.attached.get(attachment_id)
    if known is not None:
        return known
    name = (reference.get("metadata") or {}).get("name") or attachment_id
    found = await _resolved(attachment_id, turn)
    if found is None:
        return _text(f"[The attachment {name!r} is no longer there.]")
    block = await asyncio.to_thread(block_of, found, sees_images=turn is None or turn.may_see_images)
    if (
        turn is not None
        and sum(len(str(kept)) for kept in turn.attached.values()) + len(found.content) < MAX_KEPT_BYTES
    ):
        turn.attached[attachment_id] = block
    return block


async def _resolved(attachment_id: str, turn: TurnTools | None) -> AttachedFile | None:
    if turn is None or turn.files.attachments is None:
        return None
    try:
        return await turn.files.attachments.resolve(attachment_id)
    except PizzabotError:
        return None


def block_of(file: AttachedFile, *, sees_images: bool) -> Block:
    """A content block with the file in it. Takes a while for a large one: call it in a thread."""
    kind = file.media_type.partition("/")[0]
    if kind == "text":
        return _text(_as_text(file))
    if kind == "image" and not sees_images:
        return _text(f"[The image {file.name!r} is attached; this model cannot look at images.]")
    data = base64.b64encode(file.content).decode()
    if kind == "image":
        return {"type": "image", "base64": data, "mime_type": file.media_type}
    extras = {"filename": file.name, "name": file.name}
    return {"type": "file", "base64": data, "mime_type": file.media_type, "extras": extras}


def _as_text(file: AttachedFile) -> str:
    text = file.content.decode("utf-8-sig", "replace")
    cut = "" if len(text) <= MAX_TEXT else f"\n[Cut here: {len(text) - MAX_TEXT} more characters.]"
    return f"Attached file {file.name!r} ({file.media_type}):\n{text[:MAX_TEXT]}{cut}"


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _refers(message: AnyMessage) -> bool:
    content: Any = message.content
    return isinstance(message, HumanMessage) and isinstance(content, list) and any(map(_is_reference, content))


def _is_reference(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "file" and str(block.get("url", "")).startswith(SCHEME)
