"""`Client`: identity, status, threads, commands, and a run followed to its end across cuts of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from pizzabot.client.channel import TRIES, Channel
from pizzabot.client.errors import IncompatibleError, RefusedError, StreamCutError, UnreachableError
from pizzabot.client.events import Event, EventReader, Question, is_last, question_of, run_of
from pizzabot.client.ids import uuid7

PROTOCOL_VERSION = 1
CHANNELS = ("lifecycle", "messages", "tools", "input", "custom:pizzabot.gap")


@dataclass(frozen=True, kw_only=True, slots=True)
class StartedRun:
    """A run that the server has stored. `since` is the cursor right before its first event."""

    thread_id: str
    run_id: str
    since: int


class Client:
    """One server. An async context manager; used from one loop.

    `url` may have a path prefix. `token` goes into the Authorization header and nowhere else. `retry_seconds` is the
    first pause between tries, which doubles up to 2 s.
    """

    def __init__(self, url: str, token: str | None = None, *, retry_seconds: float = 0.2) -> None:
        self._channel = Channel(url, token, retry_seconds=retry_seconds)
        self._commands = 0

    @property
    def url(self) -> str:
        """The address, without a trailing slash."""
        return self._channel.url

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    async def __aenter__(self) -> Self:
        await self._channel.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def check_identity(self) -> Mapping[str, Any]:
        """`GET /`. Raises `UnreachableError`; `RefusedError` where a token is wanted; else `IncompatibleError`."""
        try:
            identity = await self._channel.get("")
        except RefusedError as error:
            if error.status in (401, 403):
                raise
            raise IncompatibleError(
                "not_pizzabot", f"{self.url} is no pizzabot server (HTTP {error.status})"
            ) from error
        version = identity.get("protocolVersion")
        if version is None:
            raise IncompatibleError("not_pizzabot", f"{self.url} is no pizzabot server: its / has no protocolVersion")
        if version != PROTOCOL_VERSION:
            raise IncompatibleError(
                "protocol_version",
                f"{self.url} speaks protocol {version!r:.40}, this client {PROTOCOL_VERSION}: update the older of them",
            )
        return identity

    async def status(self) -> Mapping[str, Any]:
        """`GET /status`."""
        return await self._channel.get("status")

    async def state(self, thread_id: str) -> Mapping[str, Any]:
        """`GET /threads/:id/state`. Raises `RefusedError` `no_such_thread`."""
        return await self._channel.get(f"{_path(thread_id)}/state")

    async def create_thread(self, thread_id: str | None = None, *, metadata: Mapping[str, Any] | None = None) -> str:
        """Create a thread and return its id, which is minted here so that a lost answer can be asked for again."""
        chosen = thread_id or uuid7()
        body = {"thread_id": chosen, "metadata": dict(metadata or {}), "if_exists": "do_nothing"}
        answer = await self._channel.post_safely("threads", body)
        return str(answer.get("thread_id", chosen))

    async def command(self, thread_id: str, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send one command once and return its envelope. Raises `RefusedError` with the envelope's code."""
        return await self._channel.post(*self._command(thread_id, method, params))

    async def stop(self, thread_id: str, run_id: str | None = None) -> None:
        """`run.stop`: stop the run, or whichever is active. Harmless to repeat, so a lost answer is asked for again."""
        params = {} if run_id is None else {"run_id": run_id}
        await self._channel.post_safely(*self._command(thread_id, "run.stop", params))

    async def start(
        self,
        thread_id: str,
        text: str,
        *,
        model: str | None = None,
        message_id: str | None = None,
        run_id: str | None = None,
    ) -> StartedRun:
        """`run.start` with ids minted here: when its answer is lost the same request is sent again, and done once."""
        message = {"type": "human", "content": text, "id": message_id or uuid7()}
        params: dict[str, Any] = {
            "assistant_id": "pizza-bot",
            "run_id": run_id or uuid7(),
            "input": {"messages": [message]},
        }
        if model is not None:
            params["config"] = {"configurable": {"model": model}}
        return await self._started(thread_id, "run.start", params)

    async def questions(self, thread_id: str) -> Sequence[Question]:
        """What waits for a person on this thread, oldest first: `GET /threads/:id/interrupts`."""
        answer = await self._channel.get(f"{_path(thread_id)}/interrupts")
        listed = answer.get("interrupts")
        return [question_of(entry) for entry in listed or () if isinstance(entry, Mapping)]

    async def respond(self, thread_id: str, answers: Mapping[str, Any], *, run_id: str | None = None) -> StartedRun:
        """`input.respond`: answer questions by their ids and return the run that goes on.

        All are taken or none. Raises `RefusedError`: `invalid_decision`, `already_decided`, `no_such_interrupt`.
        """
        responses = [{"interrupt_id": name, "response": answer} for name, answer in answers.items()]
        params = {"run_id": run_id or uuid7(), "responses": responses}
        return await self._started(thread_id, "input.respond", params)

    async def _started(self, thread_id: str, method: str, params: Mapping[str, Any]) -> StartedRun:
        envelope = await self._channel.post_safely(*self._command(thread_id, method, params))
        started, meta = envelope.get("result"), envelope.get("meta")
        if not isinstance(started, Mapping) or not isinstance(meta, Mapping):
            raise IncompatibleError("bad_answer", f"{self.url} accepts a run without saying which")
        since = meta.get("applied_through_seq")
        return StartedRun(
            thread_id=thread_id,
            run_id=str(started.get("run_id", params["run_id"])),
            since=since if isinstance(since, int) else 0,
        )

    async def stream(
        self,
        thread_id: str,
        text: str,
        *,
        model: str | None = None,
        message_id: str | None = None,
        run_id: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Say `text` and yield what happens; the last event is `RunEnded` or `RunFailed`.

        The run is started first and its events are read from the server's log from there on: nothing can be missed,
        however late the stream is opened or how often it is cut. Closing the generator leaves the run running.
        """
        started = await self.start(thread_id, text, model=model, message_id=message_id, run_id=run_id)
        async with aclosing(self.follow(started)) as events:
            async for event in events:
                yield event

    async def follow(self, run: StartedRun) -> AsyncGenerator[Event, None]:
        """The events of a run that was started, from its beginning to its end."""
        reader = EventReader(run.run_id)
        async with aclosing(self.frames_of(run)) as frames:
            async for frame in frames:
                for event in reader.read(frame):
                    yield event

    async def frames_of(self, run: StartedRun) -> AsyncGenerator[Mapping[str, Any], None]:
        """The protocol frames of a run, as the server sends them, up to its terminal one."""
        async with aclosing(self.frames(run.thread_id, since=run.since)) as frames:
            async for frame in frames:
                if run_of(frame) not in (run.run_id, None):
                    continue
                yield frame
                if is_last(frame) and run_of(frame) == run.run_id:
                    return

    async def frames(self, thread_id: str, *, since: int) -> AsyncGenerator[Mapping[str, Any], None]:
        """The thread's frames after `since`, then what comes, without end, duplicates or gaps.

        After a cut it goes on behind the last frame it yielded. Raises `StreamCutError` after 8 tries in a row that
        brought nothing, and `RefusedError` where the server will not have it.
        """
        path = f"{_path(thread_id)}/stream/events"
        wanted = {"channels": list(CHANNELS)}
        cursor, failures = since, 0
        while True:
            try:
                heartbeats = 0
                async with aclosing(self._channel.stream(path, {**wanted, "since": cursor})) as connection:
                    async for frame in connection:
                        if frame is None:
                            # The first comment only says that the stream is open; the second that it lasted.
                            heartbeats += 1
                            failures = 0 if heartbeats > 1 else failures
                            continue
                        sequence = frame.get("seq")
                        if isinstance(sequence, int):
                            if sequence <= cursor:
                                continue
                            cursor, failures = sequence, 0
                        yield frame
                reason = "the server ended the stream"
            except (UnreachableError, StreamCutError) as error:
                reason = error.detail
            failures += 1
            if failures >= TRIES:
                raise StreamCutError("stream_cut", f"the events of thread {thread_id} cannot be followed: {reason}")
            await asyncio.sleep(self._channel.pause(failures))

    def _command(self, thread_id: str, method: str, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        self._commands += 1
        body = {"id": self._commands, "method": method, "params": dict(params)}
        return f"{_path(thread_id)}/commands", body


def _path(thread_id: str) -> str:
    return f"threads/{quote(thread_id, safe=':@~')}"
