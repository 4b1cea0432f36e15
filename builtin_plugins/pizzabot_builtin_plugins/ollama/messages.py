"""Puts messages into the forms that Ollama's API takes: text beside tool calls, images only from the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage  # noqa: TID253

NO_VISION = "[an image was returned here; this model cannot see images]"


def for_ollama(messages: Sequence[BaseMessage], *, vision: bool) -> list[BaseMessage]:
    """Assistant blocks become text; a tool's image follows as the user's, or as a notice where the model is blind."""
    result: list[BaseMessage] = []
    waiting: list[dict[str, Any]] = []
    for message in messages:
        if waiting and not isinstance(message, ToolMessage):
            # After the last result of the round: Ollama wants results right behind the calls they answer.
            result.append(HumanMessage(content=[*waiting]))
            waiting = []
        if isinstance(message, AIMessage) and isinstance(message.content, list):
            result.append(message.model_copy(update={"content": str(message.text)}))
        elif isinstance(message, ToolMessage) and isinstance(message.content, list):
            text, images = _split(message, vision=vision)
            waiting += images
            result.append(message.model_copy(update={"content": text}))
        else:
            result.append(message)
    return [*result, HumanMessage(content=[*waiting])] if waiting else result


def _split(message: ToolMessage, *, vision: bool) -> tuple[str, list[dict[str, Any]]]:
    texts: list[str] = []
    images: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, str):
            texts.append(block)
        elif block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        elif block.get("type") in ("image", "image_url") and vision and _inline(block):
            images.append(block)
            texts.append("[the image follows]")
        elif block.get("type") in ("image", "image_url"):
            texts.append(NO_VISION)
    return "\n".join(texts), images


def _inline(block: dict[str, Any]) -> bool:
    """Whether the image's bytes are here: Ollama fetches no addresses."""
    address = block.get("image_url")
    if isinstance(address, dict):
        address = address.get("url")
    return bool(block.get("base64") or block.get("data")) or (isinstance(address, str) and address.startswith("data:"))
