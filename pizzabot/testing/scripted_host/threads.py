"""`host.threads` of a scripted host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.storage_backends import Thread, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue, Namespace, ThreadState

if TYPE_CHECKING:
    from pizzabot.testing.scripted_host.conversation import Conversation
    from pizzabot.testing.scripted_host.host import ScriptedHost

MAX_PAGE = 200
MAX_HISTORY = 1000
NODES = ("__start__", "model", "tools")


class ScriptedThreads:
    """Threads in memory; earlier states are those that a test put into `ScriptedHost.histories`."""

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    async def create(
        self,
        thread_id: str | None = None,
        /,
        *,
        metadata: Mapping[str, JsonValue] | None = None,
        if_exists: str = "raise",
        caller: Caller,
    ) -> Thread:
        wanted = thread_id or self._host.mint("thread")
        if not wanted.isprintable() or "/" in wanted or len(wanted) > 255:
            raise InvalidRequest("invalid_id", "the id of a thread has at most 255 characters and no slash")
        conversation = self._host.conversation(wanted, caller.owner)
        if conversation.created_at is None:
            conversation.metadata = metadata or {}
            self._host.begin(conversation)
        elif if_exists != "do_nothing":
            raise Conflict("thread_exists", f"thread {wanted} exists; pass if_exists=do_nothing to get it")
        return self._host.row(conversation)

    async def get(self, thread_id: str, /, *, caller: Caller) -> Thread:
        return self._host.row(self._host.known(thread_id, caller))

    async def page(
        self, *, limit: int = MAX_PAGE, offset: int = 0, status: ThreadStatus | None = None, caller: Caller
    ) -> Sequence[Thread]:
        if not 1 <= limit <= MAX_PAGE or offset < 0:
            raise InvalidRequest("invalid_argument", f"`limit` must be 1 to {MAX_PAGE}, `offset` 0 or more")
        rows = [row for row in self._host.rows(caller.owner) if status in (None, row.status)]
        return rows[offset : offset + limit]

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState:
        conversation = self._host.known(thread_id, caller)
        if checkpoint_id is None:
            return conversation.state()
        entries = self._host.histories.get(thread_id, [])
        return entries[_place(entries, checkpoint_id)]

    async def history(
        self,
        thread_id: str,
        /,
        *,
        limit: int = 10,
        before: str | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Sequence[ThreadState]:
        self._host.known(thread_id, caller)
        if not 1 <= limit <= MAX_HISTORY:
            raise InvalidRequest("invalid_argument", f"`limit` must be 1 to {MAX_HISTORY}, not {limit}")
        wanted = "|".join(namespace)
        entries = [entry for entry in self._host.histories.get(thread_id, []) if _namespace(entry) == wanted]
        start = _place(entries, before) + 1 if before is not None else 0
        return entries[start : start + limit]

    async def update_state(
        self,
        thread_id: str,
        values: Mapping[str, JsonValue],
        /,
        *,
        as_node: str | None = None,
        checkpoint_id: str | None = None,
        caller: Caller,
    ) -> ThreadState:
        """The values replace those of the same name; `messages` are added to what was said."""
        conversation = self._host.known(thread_id, caller)
        entries = self._host.histories.setdefault(thread_id, [])
        if checkpoint_id is not None:
            _place(entries, checkpoint_id)
        self._refuse_unless_quiet(conversation)
        if as_node is not None and as_node not in NODES:
            raise InvalidRequest("no_such_node", f"there is no node {as_node!r}; there are {', '.join(NODES)}")
        said = values.get("messages", [])
        if not isinstance(said, list) or not all(isinstance(message, dict) for message in said):
            raise InvalidRequest("invalid_values", "`values.messages` must be a list of messages")
        conversation.messages.extend(message for message in said if isinstance(message, dict))
        conversation.values.update({name: value for name, value in values.items() if name != "messages"})
        entries.insert(0, conversation.state(self._host.mint("checkpoint")))
        self._host.feed.changes.notify()
        return entries[0]

    async def delete(self, thread_id: str, /, *, caller: Caller) -> bool:
        conversation = self._host.drop(thread_id, caller)
        if conversation is None:
            return False
        if conversation.run is not None and conversation.run.active:
            await conversation.run.cut_short("CANCELLED")
            await conversation.run.ended()
        conversation.log.close()
        self._host.feed.changes.notify()
        return conversation.created_at is not None

    def _refuse_unless_quiet(self, conversation: Conversation) -> None:
        row = self._host.row(conversation)
        if row.status is ThreadStatus.BUSY:
            raise Conflict("thread_busy", f"thread {row.thread_id} has a run: wait for its end, or stop it")
        if row.status is ThreadStatus.INTERRUPTED:
            raise Conflict("interrupt_pending", f"thread {row.thread_id} waits for a person's answer")


def _namespace(entry: ThreadState) -> str:
    return "" if entry["checkpoint"] is None else entry["checkpoint"]["checkpoint_ns"]


def _place(entries: Sequence[ThreadState], checkpoint_id: str) -> int:
    for place, entry in enumerate(entries):
        if entry["checkpoint"] is not None and entry["checkpoint"]["checkpoint_id"] == checkpoint_id:
            return place
    raise NotFound("no_such_checkpoint", f"there is no checkpoint {checkpoint_id}")
