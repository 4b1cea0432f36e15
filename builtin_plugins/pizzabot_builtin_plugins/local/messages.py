"""Conversations as llama.cpp reads them: langchain messages to OpenAI's, text only.

A stored answer is a list of v1 content blocks (text, reasoning, tool_call, …); the text goes back to the model, its
reasoning does not, and what it cannot see is named in words, so that nothing vanishes from the conversation silently.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_SILENT = frozenset({"reasoning", "thinking", "tool_call", "tool_call_chunk", "tool_use", "invalid_tool_call"})


def to_openai(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The `messages` of a chat completion request."""
    return [_message(message) for message in messages]


def _message(message: BaseMessage) -> dict[str, Any]:
    # The type of a chunk is "AIMessageChunk" where that of its message is "ai".
    kind = {"AIMessageChunk": "ai", "HumanMessageChunk": "human", "SystemMessageChunk": "system"}.get(
        message.type, message.type
    )
    result: dict[str, Any] = {"role": _ROLES.get(kind, "user"), "content": text_of(message.content)}
    if calls := getattr(message, "tool_calls", None):
        result["tool_calls"] = [_call(call) for call in calls]
    if kind == "tool":
        result["tool_call_id"] = getattr(message, "tool_call_id", "")
    return result


def _call(call: Any) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)}
    return {"id": call["id"], "type": "function", "function": function}


def text_of(content: str | Sequence[str | dict[str, Any]]) -> str:
    """The text of a message's content; a block of another kind becomes `[image: this model reads text only]`."""
    if isinstance(content, str):
        return content
    return "".join(_block(block) for block in content)


def _block(block: str | dict[str, Any]) -> str:
    if isinstance(block, str):
        return block
    kind = str(block.get("type", ""))
    if kind == "text":
        return str(block.get("text", ""))
    return "" if kind in _SILENT else f"[{kind.removesuffix('_url') or 'part'}: this model reads text only]"
