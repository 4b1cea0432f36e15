"""The Python SDK, asynchronous and synchronous, behind one face: start a turn, watch it as a user does, answer, stop.

What is collected is what the SDK's projections show (`interleave_projections`: messages, tool calls, subagents and
state), not frames.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from langgraph_sdk import get_client, get_sync_client

SECONDS = 40.0
ASSISTANT = "pizza-bot"
SHOWN = ["messages", "tool_calls", "subgraphs", "values"]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Said:
    """One message as its stream showed it; `whole` unless it was broken off."""

    text: str
    reasoning: str
    whole: bool


@dataclass
class Call:
    """One tool call: its output as text, or its error."""

    name: str
    args: Any
    output: str | None = None
    error: str | None = None


@dataclass
class Scope:
    """What was said and called at one level, and who was delegated to there."""

    messages: list[Said] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    subagents: list[Scope] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """Of messages that said something and were not broken off."""
        return [message.text for message in self.messages if message.whole and message.text]

    @property
    def tools(self) -> list[Call]:
        """Sorted by name and arguments: those of one step run at once."""
        return sorted(self.calls.values(), key=lambda call: (call.name, str(call.args)))


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def conversation(values: dict[str, Any]) -> list[tuple[str, str]]:
    """A state's messages as (type, text)."""
    return [(message["type"], text_of(message["content"])) for message in values["messages"]]


def told(output: Any) -> str:
    """A tool's output as a person reads it: a message's content, or that of the message in a command."""
    if isinstance(output, dict) and output.get("lg_name") == "Command":
        output = output["update"]["messages"][-1]
    return text_of(output["content"] if isinstance(output, dict) else output)


class Talk(Protocol):
    """One `threads.stream` of one client."""

    thread_id: str

    async def start(self, text: str, **params: Any) -> str:
        """The id of the run that `run.start` began."""

    async def watch(self) -> Scope:
        """What the projections show until the run ends or pauses."""

    async def seeing(self) -> None:
        """Wait until the stream behind the projections has brought its first event."""

    async def has(self, event_id: str) -> None:
        """Wait until the stream behind the projections has brought this event; those before it are with them then."""

    def reading_along(self) -> None:
        """Subscribe without a `run.start` of one's own, which the synchronous SDK would wait for."""

    async def output(self) -> dict[str, Any]:
        """`thread.output`: the state after the run's end; raises what the run failed with."""

    async def interrupts(self, number: int) -> list[Any]:
        """`thread.interrupts` once there are so many."""

    async def answer(self, *answers: tuple[str, Any]) -> asyncio.Task[Scope]:
        """Respond to each of (interrupt, response); what the projections show until the end or the next pause."""

    async def rest(self, call: Callable[[Any], Any]) -> Any:
        """`call(client)`, awaited where it has to be."""


class AsyncTalk:
    def __init__(self, client: Any, thread: Any) -> None:
        self._client = client
        self._thread = thread
        self.thread_id = thread.thread_id

    async def start(self, text: str, **params: Any) -> str:
        return str((await self._thread.run.start(input=said(text), **params))["run_id"])

    async def watch(self) -> Scope:
        shown = [item async for item in self._thread.interleave_projections(SHOWN)]
        scope = Scope()
        for channel, item in newest_calls(shown):
            if channel == "values":
                scope.values.append(item)
            elif channel == "messages":
                scope.messages.append(await _said(item))
            elif channel == "tool_calls":
                await _called(scope, item)
            else:
                scope.subagents.append(await _delegated(item))
        return scope

    async def seeing(self) -> None:
        await until(lambda: list(self._thread._seen_event_ids))

    async def has(self, event_id: str) -> None:
        await until(lambda: event_id in self._thread._seen_event_ids)

    def reading_along(self) -> None:
        pass

    async def output(self) -> dict[str, Any]:
        return dict(await self._thread.output)

    async def interrupts(self, number: int) -> list[Any]:
        return await until(lambda: _enough(self._thread, number))

    async def answer(self, *answers: tuple[str, Any]) -> asyncio.Task[Scope]:
        watching = asyncio.create_task(self.watch())
        # What comes before a subscription is not kept. It may have come and gone already.
        await until(lambda: self._thread._controller._subscriptions or watching.done())
        for interrupt_id, response in answers:
            await self._thread.run.respond(response, interrupt_id=interrupt_id)
        return watching

    async def rest(self, call: Callable[[Any], Any]) -> Any:
        return await call(self._client)


class SyncTalk:
    def __init__(self, client: Any, thread: Any) -> None:
        self._client = client
        self._thread = thread
        self.thread_id = thread.thread_id

    async def start(self, text: str, **params: Any) -> str:
        started = await in_thread(lambda: self._thread.run.start(input=said(text), **params))
        return str(started["run_id"])

    async def watch(self) -> Scope:
        return await in_thread(self._watch)

    def _watch(self) -> Scope:
        scope = Scope()
        shown = list(self._thread.interleave_projections(SHOWN))
        for channel, item in newest_calls(shown):
            if channel == "values":
                scope.values.append(item)
            elif channel == "messages":
                scope.messages.append(_said_sync(item))
            elif channel == "tool_calls":
                _called_sync(scope, item)
            else:
                scope.subagents.append(_delegated_sync(item))
        return scope

    async def seeing(self) -> None:
        await until(lambda: self._thread._controller._seen_event_ids)

    async def has(self, event_id: str) -> None:
        await until(lambda: event_id in self._thread._controller._seen_event_ids)

    def reading_along(self) -> None:
        self._thread._controller._run_start_gate.set()

    async def output(self) -> dict[str, Any]:
        return dict(await in_thread(lambda: self._thread.output))

    async def interrupts(self, number: int) -> list[Any]:
        return await until(lambda: _enough(self._thread, number))

    async def answer(self, *answers: tuple[str, Any]) -> asyncio.Task[Scope]:
        watching = asyncio.create_task(self.watch())
        # What comes before a subscription is not kept. It may have come and gone already.
        await until(lambda: self._thread._controller._subscriptions or watching.done())
        for interrupt_id, response in answers:
            await in_thread(partial(self._thread.run.respond, response, interrupt_id=interrupt_id))
        return watching

    async def rest(self, call: Callable[[Any], Any]) -> Any:
        return await in_thread(lambda: call(self._client))


@asynccontextmanager
async def talking(kind: str, url: str, thread_id: str | None = None) -> AsyncIterator[Talk]:
    """A client of the kind `async` or `sync`, and its stream on a thread."""
    if kind == "async":
        async with (
            get_client(url=url, api_key=None) as client,
            client.threads.stream(thread_id, assistant_id=ASSISTANT) as thread,
        ):
            yield AsyncTalk(client, thread)
        return
    with get_sync_client(url=url, api_key=None) as sync_client:
        stream = sync_client.threads.stream(thread_id, assistant_id=ASSISTANT)
        opened = await in_thread(stream.__enter__)
        try:
            yield SyncTalk(sync_client, opened)
        finally:
            await in_thread(stream.close)


def played(scene: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(SECONDS):
            return await scene

    return asyncio.run(bounded())


async def until(found: Callable[[], Found | None]) -> Found:
    """The first true value of `found`: the SDK keeps it without telling that it changed."""
    while not (value := found()):  # noqa: ASYNC110 - see above
        await asyncio.sleep(0.005)
    return value


async def in_thread(work: Callable[[], Found]) -> Found:
    """`work` in a thread of its own: a broken-off wait must not keep the interpreter from ending, as a pool would."""
    results: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as error:
            results.put((None, error))
        if not loop.is_closed():
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, daemon=True).start()
    await done.wait()
    value, error = results.get_nowait()
    if error is not None:
        raise error
    return value


def newest_calls(shown: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Without the older ones of calls that started twice: a call that goes on starts again, and only the SDK's last
    handle of it is ever finished."""
    last = {item.tool_call_id: item for channel, item in shown if channel == "tool_calls"}
    return [(channel, item) for channel, item in shown if channel != "tool_calls" or last[item.tool_call_id] is item]


def _enough(thread: Any, number: int) -> list[Any] | None:
    found = list(thread.interrupts)
    return found if len(found) >= number else None


async def _delegated(handle: Any) -> Scope:
    # Listed first: a message that is read while its handle is iterated never gets its next piece (wire.md §9.2).
    messages, calls = [message async for message in handle.messages], [call async for call in handle.tool_calls]
    below = Scope(messages=[await _said(message) for message in messages])
    for call in {call.tool_call_id: call for call in calls}.values():
        await _called(below, call)
    return below


def _delegated_sync(handle: Any) -> Scope:
    messages, calls = list(handle.messages), list(handle.tool_calls)
    below = Scope(messages=[_said_sync(message) for message in messages])
    for call in {call.tool_call_id: call for call in calls}.values():
        _called_sync(below, call)
    return below


async def _said(stream: Any) -> Said:
    text, whole = await _joined(stream.text)
    reasoning, _ = await _joined(stream.reasoning)
    return Said(text, reasoning, whole)


async def _joined(pieces: Any) -> tuple[str, bool]:
    """What came, and whether it came to its end."""
    came: list[str] = []
    try:
        async for piece in pieces:
            came.append(piece)  # noqa: PERF401 - kept when the iteration breaks
    except Exception:
        return "".join(came), False
    return "".join(came), True


def _said_sync(stream: Any) -> Said:
    text, whole = _joined_sync(stream.text)
    return Said(text, _joined_sync(stream.reasoning)[0], whole and stream.done)


def _joined_sync(pieces: Iterable[str]) -> tuple[str, bool]:
    came: list[str] = []
    try:
        for piece in pieces:
            came.append(piece)  # noqa: PERF402 - kept when the iteration breaks
    except Exception:
        return "".join(came), False
    return "".join(came), True


async def _called(scope: Scope, handle: Any) -> None:
    call = Call(handle.name, handle.input)
    try:
        call.output = told(await handle.output)
    except RuntimeError as error:
        call.error = str(error)
    scope.calls[handle.tool_call_id] = call


def _called_sync(scope: Scope, handle: Any) -> None:
    call = Call(handle.name, handle.input)
    try:
        call.output = told(handle.output)
    except RuntimeError as error:
        call.error = str(error)
    scope.calls[handle.tool_call_id] = call
