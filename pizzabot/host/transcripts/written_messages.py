"""Messages that a client wrote into a thread's state: they enter the conversation, too (spec/12 §0, statement 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pizzabot.host.ids import uuid7
from pizzabot.host.runs.turns import first_fact_of, head_of
from pizzabot.host.transcripts.thread_log import ThreadLog
from pizzabot_hookspecs import SYSTEM, Caller
from pizzabot_hookspecs.storage_backends import Storage
from pizzabot_hookspecs.wire import ThreadState

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}

Facts = list[tuple[str, Mapping[str, Any]]]


class WrittenMessages:
    """Tells what a write to the state has added, as facts of the thread."""

    def __init__(self, storage: Storage, log: ThreadLog) -> None:
        self._storage = storage
        self._log = log

    async def tell(
        self, thread_id: str, before: ThreadState | None, after: ThreadState, /, *, earlier: bool, caller: Caller
    ) -> None:
        """`before` is the state that was written on; `earlier`: it was not the newest, so that a branch begins."""
        checkpoint = after["checkpoint"]
        end = None if checkpoint is None else checkpoint["checkpoint_id"]
        head = await (self._turn_of(before) if earlier and before is not None else head_of(self._storage, thread_id))
        known = set() if before is None else {message.get("id") for message in _messages(before)}
        said = [told for message in _messages(after) if message.get("id") not in known and (told := _told(message))]
        facts: Facts = []
        if said and (head is None or earlier):
            facts.append(("turn", _turn(said, parent=head, base=_checkpoint(before))))
            head = str(facts[0][1]["turn_id"])
            said = [one for one in said if one["id"] != head]
        facts += [("message", {"turn_id": head, "message": one}) for one in said]
        if head is not None and end is not None:
            facts.append(("head", {"turn_id": head, "end": end}))
        await self._log.tell(thread_id, facts, caller=caller)

    async def _turn_of(self, state: ThreadState) -> str | None:
        run_id = state["metadata"].get("run_id")
        run = await self._storage.run(run_id, caller=SYSTEM) if isinstance(run_id, str) else None
        found = (await first_fact_of(self._storage, run)).get("turn_id")
        return found if isinstance(found, str) else None


def _turn(said: list[dict[str, Any]], *, parent: str | None, base: str | None) -> dict[str, Any]:
    """A turn that nobody answers: the first message of a person's, or none."""
    message = next((one for one in said if one["role"] == "user"), None)
    turn_id = uuid7() if message is None else message["id"]
    return {"turn_id": turn_id, "parent_id": parent, "source": "api", "message": message, "base": base}


def _messages(state: ThreadState) -> Iterator[Mapping[str, Any]]:
    found = state["values"].get("messages")
    return (one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else iter(())


def _told(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message as a fact has it; None for what is no message of a person's or the assistant's, or says nothing."""
    role = _ROLES.get(str(message.get("type", message.get("role"))))
    content, message_id = message.get("content"), message.get("id")
    if role is None or not isinstance(message_id, str):
        return None
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return None
    parts = [
        {"type": "text", "text": block["text"]}
        for block in blocks
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    if not any(part["text"] for part in parts):
        return None
    return {"id": message_id, "role": role, "content": parts, "metadata": {}}


def _checkpoint(state: ThreadState | None) -> str | None:
    checkpoint = None if state is None else state["checkpoint"]
    return None if checkpoint is None else checkpoint["checkpoint_id"]
