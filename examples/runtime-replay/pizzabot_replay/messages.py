"""Messages: as a conversation keeps them (flat, plain JSON), as a model is asked, and as a digest of what was said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pizzabot_hookspecs.wire import Message

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Stored: TypeAlias = dict[str, Any]
"""`{type: human|ai, id, content, response_metadata, …}`: what clients find in a thread's `values.messages`."""


def human(message: Message) -> Stored:
    """What the person said. This runtime knows text; a file is mentioned by its name."""
    files = [part.get("name", "a file") for part in message.parts if part["type"] == "file"]
    content = "\n".join([message.text, *(f"[{name}]" for name in files)])
    return {"type": "human", "id": message.id, "content": content, "additional_kwargs": {}, "response_metadata": {}}


def ai(message_id: str, text: str, *, cancelled: bool) -> Stored:
    """An answer, or the part of it that was streamed before it was stopped."""
    how = {"cancelled": True} if cancelled else {}
    return {
        "type": "ai",
        "id": message_id,
        "content": text,
        "tool_calls": [],
        "additional_kwargs": {},
        "response_metadata": how,
    }


def asked(conversation: Sequence[Stored]) -> list[BaseMessage]:
    """The conversation as a model is handed it. Imports LangChain."""
    from langchain_core.messages import AIMessage, HumanMessage

    kinds: dict[str, type[BaseMessage]] = {"human": HumanMessage, "ai": AIMessage}
    return [kinds[message["type"]](content=message["content"], id=message["id"]) for message in conversation]


def digest(model_id: str, conversation: Iterable[Stored]) -> str:
    """The key of a recording: the model and who said what. Ids are left out, so another thread may replay it."""
    said = [[message["type"], message["content"]] for message in conversation]
    return hashlib.sha256(json.dumps([model_id, said]).encode()).hexdigest()
