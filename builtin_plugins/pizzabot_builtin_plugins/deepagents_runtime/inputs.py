"""What the person said, as LangChain messages (spec/05 §10). The client's ids are kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pizzabot_builtin_plugins.deepagents_runtime.open_messages import well_formed
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.wire import FilePart, Message

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

METADATA = "pizzabot"
"""Key in a message's `additional_kwargs`: its metadata, as the host let it through (spec/12 §1.1)."""


def to_graph(messages: Iterable[Message]) -> list[BaseMessage]:
    """Raises `InvalidRequest` `unsupported_role` for a message that no person says."""
    from langchain_core.messages import HumanMessage

    said: list[BaseMessage] = []
    for message in messages:
        if message.role != "user":
            detail = f"message {message.id!r} has the role {message.role!r}; a turn takes messages of the role 'user'"
            raise InvalidRequest("unsupported_role", detail)
        more = {METADATA: dict(message.metadata)} if message.metadata else {}
        said.append(HumanMessage(content=_content(message), id=message.id, additional_kwargs=more))
    return said


def _content(message: Message) -> Any:
    """One text where there are no files; else blocks, files by reference (they are inlined at the model call)."""
    if not any(part["type"] == "file" for part in message.parts):
        return well_formed(message.text)
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if part["type"] == "file":
            blocks.append(_file(part))
        elif part["type"] in ("text", "reasoning") and part["text"]:
            blocks.append({"type": "text", "text": well_formed(part["text"])})
    return blocks


def _file(part: FilePart) -> dict[str, Any]:
    metadata = {key: part[key] for key in ("name", "attachmentId", "sizeBytes") if key in part}
    return {"type": "file", "url": part["url"], "mime_type": part["mediaType"], "metadata": metadata}
