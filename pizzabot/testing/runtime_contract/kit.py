"""What the suite is made with: storage in memory, a listener, intents that are written down, and readers of frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import AgentRun, ChosenModel, Roster, RuntimeServices, SubagentSpec, Turn
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.interrupts import IntentLog
from pizzabot_hookspecs.storage_backends import GraphStorage
from pizzabot_hookspecs.support.surroundings import without_surroundings
from pizzabot_hookspecs.wire import Frame, JsonValue, Message, Namespace

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore

    from pizzabot.testing.scripted_model import Reply, ScriptedModel

CONCURRENT_TURNS = 20


class MemoryGraphStorage:
    """A `GraphStorage` that keeps everything in this process, for as long as the object lives."""

    def __init__(self) -> None:
        self._checkpointer: BaseCheckpointSaver[Any] | None = None
        self._store: BaseStore | None = None

    async def checkpointer(self) -> BaseCheckpointSaver[Any]:
        from langgraph.checkpoint.memory import InMemorySaver

        if self._checkpointer is None:
            self._checkpointer = InMemorySaver()
        return self._checkpointer

    async def store(self) -> BaseStore:
        from langgraph.store.memory import InMemoryStore

        if self._store is None:
            self._store = InMemoryStore()
        return self._store


def services_of(
    storage: GraphStorage, *, tools: Sequence[AgentTool] = (), subagents: Sequence[SubagentSpec] = ()
) -> RuntimeServices:
    """What a host hands to a runtime, with a roster that stays as it is."""
    roster = Roster(fingerprint="the only one", tools=tuple(tools), subagents=tuple(subagents))
    return RuntimeServices(graph_storage=storage, roster=lambda: roster)


class RecordedIntents:
    """An `IntentLog` in memory: `open_calls` as they stand, `journal` as they were opened and closed.

    Whoever is to see the order of other things beside them writes into the same journal.
    """

    def __init__(self, journal: list[str] | None = None) -> None:
        self.journal: list[str] = [] if journal is None else journal
        self.open_calls: dict[str, tuple[str, Namespace]] = {}
        self.refusing: Exception | None = None
        self.closed = asyncio.Event()

    async def open(self, call_id: str, /, *, tool: str, namespace: Namespace) -> None:
        if self.refusing is not None:
            raise self.refusing
        self.open_calls[call_id] = (tool, namespace)
        self.journal.append(f"open {call_id}")

    async def close(self, call_id: str, /) -> None:
        if self.open_calls.pop(call_id, None) is not None:
            self.journal.append(f"close {call_id}")
            self.closed.set()


class Listener:
    """Iterates a run in a task of its own, as the host does; a test waits for what it hears."""

    def __init__(self, run: AgentRun) -> None:
        self.frames: list[Frame] = []
        self._news = asyncio.Event()
        self.task = asyncio.ensure_future(self._listen(run))

    async def _listen(self, run: AgentRun) -> None:
        try:
            async for frame in run:
                self.frames.append(frame)
                self._news.set()
        finally:
            self._news.set()

    async def abandon(self) -> None:
        """Cut the run off without stopping it, as a process that goes down does; wait until it has let go."""
        self.task.cancel()
        await asyncio.wait([self.task])

    async def until(self, seen: Callable[[Frame], bool]) -> Frame:
        """The first frame of which `seen` holds; fails when the run ends without it."""
        while (found := next(filter(seen, self.frames), None)) is None:
            assert not self.task.done(), f"the run ended without it: {self.frames}"
            self._news.clear()
            await self._news.wait()
        return found

    async def heard(self, text: str) -> None:
        """Wait until `text` is part of what was streamed; fails when the run ends without it."""
        while text not in text_of(self.frames):
            assert not self.task.done(), f"the run ended without streaming {text!r}, after {text_of(self.frames)!r}"
            self._news.clear()
            await self._news.wait()


def said(text: str, message_id: str = "u1") -> Message:
    """A message of the person."""
    return Message(id=message_id, role="user", parts=({"type": "text", "text": text},))


def turn(
    model: ChosenModel,
    *messages: Message,
    thread_id: str = "thread-1",
    run_id: str = "run-1",
    recover: bool = False,
    intents: IntentLog | None = None,
    **more: Any,
) -> Turn:
    """A turn of the local person. `more` are further fields of `Turn`: `answers`, `skip`, `settle`, `config`."""
    return Turn(
        run_id=run_id,
        thread_id=thread_id,
        caller=LOCAL,
        model=model,
        messages=tuple(messages),
        recover=recover,
        intents=RecordedIntents() if intents is None else intents,
        **more,
    )


async def frames_of(run: AgentRun) -> list[Frame]:
    """Every frame of a run, iterated to its end."""
    return [frame async for frame in run]


def events(frames: Iterable[Frame]) -> list[Mapping[str, Any]]:
    """The data of the `messages` frames, in order."""
    return [frame.data for frame in frames if frame.method == "messages"]


def text_of(frames: Iterable[Frame]) -> str:
    """The streamed text: every text delta, in order."""
    deltas = (data["delta"] for data in events(frames) if data["event"] == "content-block-delta" and "delta" in data)
    return "".join(delta["text"] for delta in deltas if delta["type"] == "text-delta")


def content_text(content: Any) -> str:
    """The text of a message's `content`: a string, or a list of blocks of which those of type `text` count."""
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content if isinstance(block, dict) and block.get("type") == "text")


def conversation(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """`(type, text)` of every message in a state's values."""
    return [(message["type"], content_text(message["content"])) for message in values["messages"]]


def asked(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    """`(type, text)` of what a model was handed, without the system prompt and without what a runtime tells it of now
    and here, in `<surroundings>` behind what was asked."""
    return [(message.type, said_text(message)) for message in messages if message.type != "system"]


def said_text(message: BaseMessage) -> str:
    """The text of a message that a model was handed, without what a runtime has added."""
    return without_surroundings(content_text(message.content))


def model_of(*replies: Reply) -> tuple[ScriptedModel, ChosenModel]:
    """A model that gives `replies` in order, and the same as a runtime is handed it."""
    from pizzabot.testing.scripted_model import ScriptedModel, chosen

    model = ScriptedModel(script=list(replies))
    return model, chosen(model)


class ModelDown(Exception):
    """What the scripted model raises in the tests of errors."""


def requests(frames: Iterable[Frame]) -> dict[str, Mapping[str, Any]]:
    """The data of the `input.requested` frames by interrupt id."""
    return {frame.data["interrupt_id"]: frame.data for frame in frames if frame.method == "input.requested"}


def request_for(frames: Iterable[Frame], call_id: str) -> str:
    """The id of the interrupt that asks about this tool call."""
    (found,) = [key for key, data in requests(frames).items() if data["payload"].get("tool_call_id") == call_id]
    return found


def decided(kind: str, **more: Any) -> JsonValue:
    """The canonical answer to an approval."""
    return {"decisions": [{"type": kind, **more}]}


def tool_results(values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """`(status, text)` of every tool result in a state's values, by call."""
    return {
        message["tool_call_id"]: (message["status"], content_text(message["content"]))
        for message in values["messages"]
        if message["type"] == "tool"
    }


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    """A tool call, as a scripted reply makes it."""
    return {"name": name, "id": call_id, "args": args, "type": "tool_call"}
