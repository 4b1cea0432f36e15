"""`TransportContract`: what any transport must do, whatever it speaks. Subclass it and say how a client is made::

    class TestLines(TransportContract):
        @asynccontextmanager
        async def client(self, host: ScriptedHost) -> AsyncIterator[TransportClient]:
            transport = LinesTransport(host, port=0)
            await transport.bind()
            serving = asyncio.create_task(transport.serve())
            try:
                yield LinesClient(transport.address)
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

Every test makes a fresh `ScriptedHost` and a fresh client. Nothing may take longer than `patience` seconds.
"""

from __future__ import annotations

import asyncio
import functools
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, ClassVar, Protocol, TypeVar

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_hookspecs import LOCAL, PizzabotError
from pizzabot_hookspecs.storage_backends import StoredEvent

FrameDict = Mapping[str, Any]
EVERYTHING = ("values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom")
TERMINAL = ("completed", "failed", "interrupted")

Self_ = TypeVar("Self_", bound="TransportContract")


class TransportClient(Protocol):
    """A client of the transport under test. What the server refuses is raised as a `PizzabotError` with its code."""

    async def create_thread(
        self,
        thread_id: str | None = None,
        /,
        *,
        metadata: Mapping[str, Any] | None = None,
        if_exists: str = "raise",
    ) -> Mapping[str, Any]:
        """At least `thread_id` and `metadata`."""
        ...

    async def command(self, thread_id: str, body: object, /) -> Mapping[str, Any]:
        """The envelope, `{type: success|error, id, ...}`: an error envelope is returned, not raised."""
        ...

    def events(
        self,
        thread_id: str,
        /,
        *,
        channels: Sequence[str],
        namespaces: Sequence[Sequence[str]] = (),
        depth: int | None = None,
        since: int | None = None,
    ) -> AsyncGenerator[FrameDict, None]:
        """Frames as they come, `{type: event, ...}`; it connects on first use and disconnects on `aclose`."""
        ...

    async def state(self, thread_id: str, /) -> Mapping[str, Any]: ...

    async def stop(self, thread_id: str, run_id: str, /) -> str:
        """Stop and wait: `cancelled`, `no_run` or `cancellation_pending`."""
        ...


def within_patience(test: Callable[[Self_], Awaitable[None]]) -> Callable[[Self_], None]:
    """Runs an async test of the suite, and fails it when it takes longer than `patience`."""

    @functools.wraps(test)
    def run(self: Self_) -> None:
        async def limited() -> None:
            async with asyncio.timeout(self.patience):
                await test(self)

        asyncio.run(limited())

    return run


class TransportContract(ABC):
    """Subclass it with `client`. The name of each test is the promise that it holds the transport to."""

    patience: ClassVar[float] = 20.0

    @abstractmethod
    def client(self, host: ScriptedHost) -> AbstractAsyncContextManager[TransportClient]:
        """Serve `host` on the transport under test and yield a client of it."""
        ...

    @within_patience
    async def test_a_thread_gets_the_id_and_metadata_that_were_asked_for_or_an_id_of_its_own(self) -> None:
        async with self._served() as (_, client):
            asked = await client.create_thread("tea", metadata={"colour": "green"})
            minted = await client.create_thread()
            assert (asked["thread_id"], asked["metadata"]) == ("tea", {"colour": "green"})
            assert minted["thread_id"] not in ("", "tea")

    @within_patience
    async def test_a_thread_that_exists_is_refused_unless_the_client_does_not_mind(self) -> None:
        async with self._served() as (_, client):
            await client.create_thread("tea")
            again = await client.create_thread("tea", if_exists="do_nothing")
            assert again["thread_id"] == "tea"
            assert await _code(client.create_thread("tea")) == "thread_exists"

    @within_patience
    async def test_the_state_of_an_unknown_thread_is_refused_with_its_code(self) -> None:
        async with self._served() as (_, client):
            assert await _code(client.state("nowhere")) == "no_such_thread"

    @within_patience
    async def test_a_command_is_answered_before_its_run_has_ended(self) -> None:
        async with self._served() as (host, client):
            answer = await client.command("t", _start("hold on", command_id=7))
            assert (answer["type"], answer["id"]) == ("success", 7)
            assert answer["meta"] == {"applied_through_seq": 0}
            assert await host.threads.status("t", caller=LOCAL) == "busy"

    @within_patience
    async def test_the_state_shows_what_was_said(self) -> None:
        async with self._served() as (host, client):
            await _said(host, client, "t", "good morning")
            messages = (await client.state("t"))["values"]["messages"]
            assert [message["content"] for message in messages] == ["good morning", "good morning"]

    @within_patience
    async def test_frames_come_whole_in_order_and_without_gaps(self) -> None:
        async with self._served() as (host, client):
            await _said(host, client, "t", " ".join(f"word{n}" for n in range(700)))
            frames = await _replayed(client, "t", host, since=0)
            assert frames == [_frame(event) for event in host.events("t")]
            assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))

    @within_patience
    async def test_without_a_cursor_only_the_latest_run_is_replayed(self) -> None:
        async with self._served() as (host, client):
            await _said(host, client, "t", "first")
            first_run_end = len(host.events("t"))
            await _said(host, client, "t", "second")
            frames = await _replayed(client, "t", host)
            assert frames == [_frame(event) for event in host.events("t")[first_run_end:]]

    @within_patience
    async def test_a_cursor_replays_exactly_what_was_stored_after_it(self) -> None:
        async with self._served() as (host, client):
            await _said(host, client, "t", "first")
            await _said(host, client, "t", "second")
            frames = await _replayed(client, "t", host, since=3)
            assert frames == [_frame(event) for event in host.events("t")[3:]]

    @within_patience
    async def test_a_cursor_at_the_end_gives_only_what_comes(self) -> None:
        async with self._served() as (host, client):
            await _said(host, client, "t", "first")
            end = len(host.events("t"))
            async with _listening(host, client, "t", since=end) as next_frame:
                later = host.append("t", "custom", {"payload": 1})
                assert await next_frame() == _frame(later)

    @within_patience
    async def test_a_connection_goes_on_across_runs(self) -> None:
        async with self._served() as (host, client), _listening(host, client, "t") as next_frame:
            for text in ("first", "second"):
                await client.command("t", _start(text))
                await host.settled("t")
            expected = [_frame(event) for event in host.events("t")]
            assert [await next_frame() for _ in expected] == expected

    @within_patience
    async def test_an_unknown_thread_is_silence_and_then_its_first_run(self) -> None:
        async with self._served() as (host, client), _listening(host, client, "not-yet") as next_frame:
            await client.command("not-yet", _start("hello"))
            first = await next_frame()
            assert (first["seq"], first["params"]["data"]["event"]) == (1, "running")

    @within_patience
    async def test_only_the_channels_that_were_asked_for_come(self) -> None:
        async with self._served() as (host, client):
            await _said(host, client, "t", "a b c")
            wanted = [_frame(event) for event in host.events("t") if event.method in ("lifecycle", "values")]
            assert await _first(client, len(wanted), "t", channels=("lifecycle", "values"), since=0) == wanted

    @within_patience
    async def test_namespaces_and_depth_are_passed_on(self) -> None:
        async with self._served() as (host, client):
            for namespace in (("tools:1", "model_request:2"), ("model_request:3",), (), ("tools:1",)):
                host.append("t", "updates", {"at": list(namespace)}, namespace=namespace)
            root = await _first(client, 1, "t", channels=("updates",), namespaces=[[]], depth=0, since=0)
            tools = await _first(client, 2, "t", channels=("updates",), namespaces=[["tools"]], since=0)
            assert [frame["params"]["namespace"] for frame in root] == [[]]
            assert [frame["params"]["namespace"] for frame in tools] == [["tools:1", "model_request:2"], ["tools:1"]]

    @within_patience
    async def test_a_named_custom_channel_has_only_its_own_frames(self) -> None:
        async with self._served() as (host, client):
            host.append("t", "custom", {"name": "noise", "payload": 0})
            wanted = host.append("t", "custom", {"name": "weather", "payload": 21})
            assert await _first(client, 1, "t", channels=("custom:weather",), since=0) == [_frame(wanted)]

    @within_patience
    async def test_a_refused_command_comes_back_as_an_envelope_with_its_id_and_code(self) -> None:
        async with self._served() as (_, client):
            await client.command("t", _start("hold on"))
            body = _start("again", command_id=8)
            body["params"]["multitask_strategy"] = "reject"
            refused = await client.command("t", body)
            assert (refused["type"], refused["id"], refused["error"]) == ("error", 8, "run_active")
            assert refused["message"]

    @within_patience
    async def test_an_unknown_command_and_one_that_is_none_are_envelopes_too(self) -> None:
        async with self._served() as (_, client):
            unknown = await client.command("t", {"id": 9, "method": "tea.make", "params": {}})
            malformed = await client.command("t", [1, 2])
            assert (unknown["type"], unknown["id"], unknown["error"]) == ("error", 9, "unknown_command")
            assert (malformed["type"], malformed["id"], malformed["error"]) == ("error", None, "invalid_argument")

    @within_patience
    async def test_every_character_arrives_as_it_was_said(self) -> None:
        text = 'snow☃ 🍕 \U0001f469\U0001f3fd\u200d\U0001f373 漢字 ع a\u2028b\u2029c\u0085d \\u2028 " \\ \t \u0000'
        async with self._served() as (host, client):
            await _said(host, client, "t", text)
            frames = await _replayed(client, "t", host)
            said = "".join(
                frame["params"]["data"]["delta"]["text"] for frame in frames if "delta" in frame["params"]["data"]
            )
            assert said == text
            assert (await client.state("t"))["values"]["messages"][0]["content"] == text

    @within_patience
    async def test_a_large_frame_arrives_whole(self) -> None:
        async with self._served() as (host, client):
            large = host.append("t", "values", {"messages": ["🍕" * 500_000]})
            assert await _first(client, 1, "t", since=0) == [_frame(large)]

    @within_patience
    async def test_stopping_ends_the_run_and_a_stale_run_id_touches_nothing(self) -> None:
        async with self._served() as (host, client):
            run_id = (await client.command("t", _start("hold on")))["result"]["run_id"]
            assert await client.stop("t", "another-run") == "no_run"
            assert await host.threads.status("t", caller=LOCAL) == "busy"
            assert await client.stop("t", run_id) == "cancelled"
            assert json.loads(host.events("t")[-1].data) == {"event": "completed", "code": "CANCELLED"}
            assert await client.stop("t", run_id) == "no_run"

    @within_patience
    async def test_a_client_that_leaves_frees_its_observer_and_not_the_run(self) -> None:
        async with self._served() as (host, client):
            async with _listening(host, client, "t") as next_frame:
                await client.command("t", _start("hold on"))
                await next_frame()
            await host.observed("t", 0)
            assert await host.threads.status("t", caller=LOCAL) == "busy"

    @within_patience
    async def test_observers_at_the_same_time_get_the_same_frames(self) -> None:
        async with self._served() as (host, client):
            readers = [asyncio.create_task(_until_terminal(client, "t")) for _ in range(8)]
            await host.observed("t", len(readers))
            await client.command("t", _start("one two three four five"))
            seen = await asyncio.gather(*readers)
            assert all(frames == [_frame(event) for event in host.events("t")] for frames in seen)

    @within_patience
    async def test_a_cursor_that_retention_overtook_gets_a_gap_first(self) -> None:
        async with self._served() as (host, client):
            for number in range(6):
                host.append("t", "custom", {"payload": number})
            host.forget_before("t", 4)
            gap, *rest = await _first(client, 4, "t", since=1)
            data = gap["params"]["data"]
            assert (gap["method"], data["name"]) == ("custom", "pizzabot.gap")
            assert data["payload"] == {"requested": 1, "earliest": 4, "latest": 6}
            assert [frame["seq"] for frame in rest] == [4, 5, 6]

    @within_patience
    async def test_a_cursor_beyond_the_end_is_refused(self) -> None:
        async with self._served() as (host, client):
            host.append("t", "custom", {"payload": 0})
            assert await _code(_first(client, 1, "t", since=99)) == "cursor_ahead"

    @within_patience
    async def test_a_stream_ends_when_its_thread_is_deleted(self) -> None:
        async with self._served() as (host, client), _listening(host, client, "t") as next_frame:
            event = host.append("t", "custom", {"payload": 0})
            assert await next_frame() == _frame(event)
            await host.threads.delete("t", caller=LOCAL)
            assert await _ended(next_frame)

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[tuple[ScriptedHost, TransportClient]]:
        async with ScriptedHost() as host, self.client(host) as client:
            yield host, client


def _start(text: str, *, command_id: int = 1) -> dict[str, Any]:
    messages = [{"type": "human", "content": text}]
    return {"id": command_id, "method": "run.start", "params": {"input": {"messages": messages}}}


def _frame(event: StoredEvent) -> FrameDict:
    """What a client must see of a stored event (design/wire.md §3.2)."""
    params = {"namespace": list(event.namespace), "timestamp": event.timestamp, "data": json.loads(event.data)}
    if event.node is not None:
        params["node"] = event.node
    return {
        "type": "event",
        "event_id": event.event_id,
        "seq": event.seq,
        "method": event.method,
        "params": params,
    }


async def _said(host: ScriptedHost, client: TransportClient, thread_id: str, text: str) -> None:
    """Say something and wait until the answer is complete."""
    answer = await client.command(thread_id, _start(text))
    assert answer["type"] == "success", answer
    await host.settled(thread_id)


@asynccontextmanager
async def _listening(
    host: ScriptedHost, client: TransportClient, thread_id: str, *, since: int | None = None
) -> AsyncIterator[Callable[[], Awaitable[FrameDict]]]:
    """A connection that is attached, and a function that waits for its next frame."""
    async with aclosing(client.events(thread_id, channels=EVERYTHING, since=since)) as frames:
        pending = [asyncio.ensure_future(anext(frames))]

        async def next_frame() -> FrameDict:
            return await (pending.pop() if pending else anext(frames))

        try:
            await host.observed(thread_id)
            yield next_frame
        finally:
            for read in pending:
                read.cancel()
            await asyncio.gather(*pending, return_exceptions=True)


async def _first(
    client: TransportClient,
    number: int,
    thread_id: str,
    *,
    channels: Sequence[str] = EVERYTHING,
    namespaces: Sequence[Sequence[str]] = (),
    depth: int | None = None,
    since: int | None = None,
) -> list[FrameDict]:
    found: list[FrameDict] = []
    events = client.events(thread_id, channels=channels, namespaces=namespaces, depth=depth, since=since)
    async with aclosing(events) as frames:
        async for frame in frames:
            found.append(frame)
            if len(found) == number:
                return found
    return found


async def _replayed(
    client: TransportClient, thread_id: str, host: ScriptedHost, *, since: int | None = None
) -> list[FrameDict]:
    """Frames up to the last one that is stored now."""
    last = host.events(thread_id)[-1].seq
    found: list[FrameDict] = []
    async with aclosing(client.events(thread_id, channels=EVERYTHING, since=since)) as frames:
        async for frame in frames:
            found.append(frame)
            if frame["seq"] >= last:
                break
    return found


async def _until_terminal(client: TransportClient, thread_id: str) -> list[FrameDict]:
    found: list[FrameDict] = []
    async with aclosing(client.events(thread_id, channels=EVERYTHING)) as frames:
        async for frame in frames:
            found.append(frame)
            if frame["method"] == "lifecycle" and frame["params"]["data"]["event"] in TERMINAL:
                break
    return found


async def _ended(next_frame: Callable[[], Awaitable[FrameDict]]) -> bool:
    try:
        await next_frame()
    except StopAsyncIteration:
        return True
    return False


async def _code(refused: Awaitable[object]) -> str:
    try:
        result = await refused
    except PizzabotError as error:
        return error.code
    raise AssertionError(f"it was not refused, it answered {str(result)[:200]}")
