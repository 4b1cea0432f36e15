"""A turn in progress: the person's messages are stored, the answer is streamed, stored, and said to be finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing

from pizzabot_hookspecs import InvalidRequest, NotFound, TooLarge, Unavailable
from pizzabot_hookspecs.agent_runtimes import Turn
from pizzabot_hookspecs.wire import Frame
from pizzabot_replay.archive import Archive
from pizzabot_replay.messages import ai, digest, human
from pizzabot_replay.settings import Mode, ReplaySettings
from pizzabot_replay.sources import Pieces, from_model, from_recording
from pizzabot_replay.speaking import Answer, is_answer_of
from pizzabot_replay.states import checkpoint_length, checkpoint_of, values_of
from pizzabot_replay.tables import Conversation


class ReplayRun:
    """An `AgentRun`. The host iterates it in one task and may call `stop` from another."""

    def __init__(self, turn: Turn, archive: Archive, settings: ReplaySettings, clock: Callable[[], float]) -> None:
        self._turn = turn
        self._archive = archive
        self._settings = settings
        self._clock = clock
        self._taken = False
        self._stopping = asyncio.Event()
        self._answer: Answer | None = None
        self._kept: asyncio.Future[Conversation] | None = None
        self._newest = 0

    def __aiter__(self) -> AsyncIterator[Frame]:
        if self._taken:
            raise RuntimeError(f"run {self._turn.run_id} is iterated once")
        self._taken = True
        return self._frames()

    async def stop(self) -> None:
        self._stopping.set()
        if self._answer is not None:
            await self._keep(self._answer, cancelled=True)

    async def _frames(self) -> AsyncIterator[Frame]:
        conversation = await self._begin()
        for frame in self._missed(conversation):
            yield frame
        for frame in self._state(conversation) if conversation.messages else ():
            yield frame
        if self._turn.settle or self._stopping.is_set() or conversation.messages[-1]["type"] == "ai":
            return  # not to go on, stopped before it began, or finished before the process died
        key = await asyncio.to_thread(digest, self._turn.model.id, conversation.messages)
        pieces, replayed = await self._source(key, conversation)
        async with aclosing(pieces):
            if self._stopping.is_set():
                return
            answer = self._answer = Answer(self._turn.run_id, self._now)
            yield answer.begin()
            try:
                while (piece := await self._next(pieces)) is not None:
                    for frame in answer.say(*piece):
                        yield frame
            except Exception:
                self._answer = None  # a later `stop` has nothing to keep
                raise
        # Stored before it is said to be finished; when `stop` was quicker, this is what `stop` has kept.
        conversation = await self._keep(answer, cancelled=self._stopping.is_set(), key=None if replayed else key)
        if not self._stopping.is_set():
            for frame in answer.end():
                yield frame
        for frame in self._state(conversation):
            yield frame

    async def _begin(self) -> Conversation:
        """Store what the person said. A turn that is recovered, or repeated, finds its messages stored already."""
        thread_id = self._turn.thread_id
        if self._turn.answers and not self._turn.settle:
            detail = f"thread {thread_id!r} waits for no answer: this runtime asks nothing; send a message"
            raise NotFound("no_such_interrupt", detail)
        so_far = await self._archive.conversation(thread_id)
        said = [human(message) for message in self._turn.messages]
        known = {message["id"] for message in so_far.messages}
        if len(known | {message["id"] for message in said}) >= self._settings.max_messages:
            limit = self._settings.max_messages
            raise TooLarge("conversation_too_long", f"thread {thread_id!r} has {limit} messages; begin a new one")
        conversation = await self._archive.add(thread_id, said, keep=self._fork(so_far))
        if not conversation.messages and not self._turn.settle:
            detail = f"thread {thread_id!r} has nothing to go on from, and the turn says nothing; send a message"
            raise InvalidRequest("nothing_to_continue", detail)
        return conversation

    def _missed(self, conversation: Conversation) -> Iterator[Frame]:
        """The answer that was stored an instant before the process died, where the person's log has not got it."""
        told, last = self._turn.told, conversation.messages[-1] if conversation.messages else None
        if not self._turn.recover or told is None or last is None or last["type"] != "ai" or last["id"] in told:
            return
        if last["response_metadata"].get("cancelled"):
            return  # the log has what was streamed of it
        answer = Answer(self._turn.run_id, self._now, message_id=last["id"])
        yield answer.begin()
        yield from answer.say("text", last["content"])
        yield from answer.end()

    def _fork(self, so_far: Conversation) -> int | None:
        """The length to cut the conversation to when the turn goes on from an earlier checkpoint."""
        checkpoint_id = self._turn.config.get("checkpoint_id")
        if checkpoint_id is None or (self._turn.recover and self._was_begun(so_far)):
            return None
        length = checkpoint_length(str(checkpoint_id), so_far)
        if length is None:
            detail = f"thread {self._turn.thread_id!r} has no checkpoint {checkpoint_id!r:.80}"
            raise InvalidRequest("no_such_checkpoint", detail)
        return length

    def _was_begun(self, so_far: Conversation) -> bool:
        """Whether the conversation holds what the turn says; of one that says nothing, whether it holds its answer."""
        if not self._turn.messages:
            return bool(so_far.messages) and is_answer_of(self._turn.run_id, so_far.messages[-1]["id"])
        return {message.id for message in self._turn.messages} <= {message["id"] for message in so_far.messages}

    async def _source(self, key: str, conversation: Conversation) -> tuple[Pieces, bool]:
        """Where the answer comes from, and whether that is a recording."""
        mode = self._settings.mode
        recording = None if mode is Mode.RECORD else await self._archive.recording(key)
        if recording is not None:
            return from_recording(recording), True
        if mode is Mode.REPLAY:
            detail = f"no answer of {self._turn.model.id} to this conversation was recorded"
            raise Unavailable("not_recorded", f'{detail}; record it with [runtime.replay] mode = "auto"')
        return from_model(self._turn.model, conversation.messages), False

    async def _next(self, pieces: Pieces) -> tuple[str, str] | None:
        """The next piece; None at the end of the answer and as soon as `stop` is called."""
        coming = asyncio.ensure_future(_first(pieces))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return None if self._stopping.is_set() else coming.result()
        finally:
            stopping.cancel()
            if not coming.done():
                coming.cancel()
            await asyncio.gather(coming, stopping, return_exceptions=True)

    async def _keep(self, answer: Answer, *, cancelled: bool, key: str | None = None) -> Conversation:
        """Store the answer: once, by whoever comes first, and to the end even if that one is cancelled."""
        if self._kept is None:
            self._kept = asyncio.ensure_future(self._store(answer, cancelled=cancelled, key=key))
        return await asyncio.shield(self._kept)

    async def _store(self, answer: Answer, *, cancelled: bool, key: str | None) -> Conversation:
        text = answer.text
        if cancelled and not text:
            return await self._archive.conversation(self._turn.thread_id)
        recording = answer.recording(key) if key is not None and not cancelled else None
        message = ai(answer.message_id, text, cancelled=cancelled)
        return await self._archive.answer(self._turn.thread_id, message, recording)

    def _state(self, conversation: Conversation) -> list[Frame]:
        """The checkpoint, then the values of the same moment: clients pair them in this order."""
        return [
            Frame(method="checkpoints", data=checkpoint_of(conversation), timestamp=self._now()),
            Frame(method="values", data=values_of(conversation), timestamp=self._now()),
        ]

    def _now(self) -> int:
        """Milliseconds, never less than before, whatever happens to the clock."""
        self._newest = max(self._newest, int(self._clock() * 1000))
        return self._newest


async def _first(pieces: Pieces) -> tuple[str, str] | None:
    return await anext(pieces, None)
