"""`host.transcripts` of a scripted host: its logs, folded as the real host folds them. There are no checkpoints."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from pizzabot.host.transcript import State, entry_of_event, fold, initial, page, turn_items
from pizzabot.testing.scripted_host.log import Changes
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.host import Export, ExportBranches, ExportFormat
from pizzabot_hookspecs.storage_backends import Thread, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue, Namespace

if TYPE_CHECKING:
    from pizzabot.testing.scripted_host.conversation import Conversation
    from pizzabot.testing.scripted_host.host import ScriptedHost

MAX_TURNS = 100
MAX_ITEMS = 200
EXPORT_CHUNK = 64 * 1024
_ENDINGS = {ExportFormat.MARKDOWN: "text/markdown; charset=utf-8", ExportFormat.JSON: "application/json"}


class ScriptedTranscripts:
    """`open_exports` counts files that nobody has closed yet; `changes` tells of it.

    `padding` is how many bytes stand behind each export's text; `compactions` counts the contexts that were shortened.
    """

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host
        self.open_exports = 0
        self.padding = 0
        self.compactions = 0
        self.changes = Changes()
        self._keys: dict[tuple[str, str, str], Mapping[str, JsonValue]] = {}

    async def page(
        self,
        thread_id: str,
        /,
        *,
        limit: int = 20,
        before_seq: int | None = None,
        around_seq: int | None = None,
        head: str | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Mapping[str, Any]:
        state = self._state(thread_id, caller)
        _check(1 <= limit <= MAX_TURNS, "limit", f"must be 1 to {MAX_TURNS}")
        _check(before_seq is None or around_seq is None, "around_seq", "must not stand beside before_seq")
        return page(
            state,
            thread_id=thread_id,
            limit=limit,
            before_seq=before_seq,
            around_seq=around_seq,
            head=head,
            namespace=namespace,
        )

    async def items(
        self,
        thread_id: str,
        turn_id: str,
        /,
        *,
        limit: int = 100,
        before_seq: int | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Mapping[str, Any]:
        state = self._state(thread_id, caller)
        _check(1 <= limit <= MAX_ITEMS, "limit", f"must be 1 to {MAX_ITEMS}")
        return turn_items(state, turn_id, before_seq=before_seq, limit=limit, namespace=namespace)

    async def tool_text(
        self, thread_id: str, call_id: str, part: str, /, *, item_id: str | None = None, caller: Caller
    ) -> str:
        state = self._state(thread_id, caller)
        _check(part in ("input", "output"), "part", "must be input or output")
        items = (item for turn in state["turns"].values() for item in turn["items"])
        calls = [item for item in items if item.get("callId") == call_id and item_id in (None, item["id"])]
        newest: Mapping[str, Any] = max(calls, key=lambda item: int(item["seq"]), default={})
        text = newest.get(part, newest.get("error") if part == "output" else None)
        if not isinstance(text, str):
            raise NotFound("no_such_tool_call", f"there is no {part} of a tool call {call_id!r}")
        return text

    async def export(
        self,
        thread_id: str,
        /,
        *,
        format: ExportFormat = ExportFormat.MARKDOWN,  # noqa: A002 - the contract's name
        branches: ExportBranches = ExportBranches.PATH,
        caller: Caller,
    ) -> Export:
        state = self._state(thread_id, caller)
        turns = list(state["turns"].values())
        if branches is ExportBranches.PATH:
            turns = [state["turns"][turn["id"]] for turn in page(state, thread_id=thread_id, limit=MAX_TURNS)["turns"]]
        text = json.dumps(turns) if format is ExportFormat.JSON else "\n\n".join(_said(turn["items"]) for turn in turns)
        body = text.encode() + b"\n" * self.padding
        self.open_exports += 1
        return Export(
            media_type=_ENDINGS[format],
            file_name=f"{thread_id}.{format.value}",
            size=len(body),
            as_of_seq=state["cursor"],
            turns=len(turns),
            chunks=ExportChunks(self, _pieces(body)),
        )

    async def choose_head(self, thread_id: str, turn_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        conversation = self._host.known(thread_id, caller)
        self._refuse_unless_quiet(conversation)
        _turn(self._state(thread_id, caller), turn_id)
        self._tell(conversation, "head", {"turn_id": turn_id})
        return {"turnId": turn_id}

    async def fork(
        self, thread_id: str, turn_id: str | None = None, /, *, new_thread_id: str | None = None, caller: Caller
    ) -> Thread:
        """The whole log as it is, with the turn as its head."""
        conversation, state = self._host.known(thread_id, caller), self._state(thread_id, caller)
        chosen = state["head"] if turn_id is None else turn_id
        if chosen is None:
            raise NotFound("no_such_turn", "nothing was said on this thread yet")
        _turn(state, chosen)
        made = await self._host.threads.create(new_thread_id, metadata={"forked_from": thread_id}, caller=caller)
        copy = self._host.conversation(made.thread_id, caller.owner)
        for event in conversation.log.events:
            copy.log.append(
                event.method,
                json.loads(event.data),
                timestamp=event.timestamp,
                namespace=event.namespace,
                node=event.node,
                run_id=event.run_id,
            )
        copy.messages.extend(conversation.messages)
        self._tell(copy, "head", {"turn_id": chosen})
        return self._host.row(copy)

    async def compact(
        self, thread_id: str, /, *, idempotency_key: str | None = None, caller: Caller
    ) -> Mapping[str, JsonValue]:
        """From 1,000 tokens to 100 each time."""
        conversation = self._host.known(thread_id, caller)
        key = None if idempotency_key is None else (caller.owner, thread_id, idempotency_key)
        if key is not None and key in self._keys:
            return self._keys[key]
        self._refuse_unless_quiet(conversation)
        if not conversation.log.events:
            raise Conflict("nothing_to_compact", "nothing was said on this thread yet")
        self.compactions += 1
        self._tell(conversation, "context", {"reason": "manual", "tokens_before": 1000, "tokens_after": 100})
        answer: dict[str, JsonValue] = {"tokensBefore": 1000, "tokensAfter": 100}
        if key is not None:
            self._keys[key] = answer
        return answer

    async def exports_closed(self) -> None:
        """Wait until every export was closed."""
        await self.changes.until(lambda: self.open_exports == 0)

    def _state(self, thread_id: str, caller: Caller) -> State:
        conversation = self._host.known(thread_id, caller)
        return fold(initial(), [entry_of_event(event) for event in conversation.log.events])

    def _tell(self, conversation: Conversation, name: str, payload: Mapping[str, Any]) -> None:
        data = {"name": f"pizzabot.{name}", "payload": {"v": 1, **payload}}
        conversation.log.append("custom", data, timestamp=int(self._host.clock() * 1000))

    def _refuse_unless_quiet(self, conversation: Conversation) -> None:
        if self._host.row(conversation).status is ThreadStatus.BUSY:
            raise Conflict("thread_busy", "the thread has a run: wait for its end, or stop it")


class ExportChunks(AsyncGenerator[bytes, None]):
    """An async generator that tells its host when it is closed, also where nobody has read it."""

    def __init__(self, owner: ScriptedTranscripts, pieces: AsyncGenerator[bytes, None]) -> None:
        self._owner, self._pieces, self._open = owner, pieces, True

    async def asend(self, value: None, /) -> bytes:
        return await self._pieces.asend(value)

    async def athrow(self, *error: Any) -> bytes:
        return await self._pieces.athrow(*error)

    async def aclose(self) -> None:
        await self._pieces.aclose()
        if self._open:
            self._open = False
            self._owner.open_exports -= 1
            self._owner.changes.notify()


async def _pieces(body: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(body), EXPORT_CHUNK):
        yield body[start : start + EXPORT_CHUNK]


def _said(items: list[dict[str, Any]]) -> str:
    return "\n\n".join(str(item["text"]) for item in items if item["kind"] == "text")


def _turn(state: State, turn_id: str) -> None:
    if turn_id not in state["turns"]:
        raise NotFound("no_such_turn", f"this thread has no turn {turn_id!r}")


def _check(holds: bool, field: str, problem: str) -> None:  # noqa: FBT001 - the one thing that is checked
    if not holds:
        raise InvalidRequest("invalid_argument", f"`{field}` {problem}", fields={field: problem})
