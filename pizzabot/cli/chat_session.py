"""A session with a server: a loop in a thread of its own, one client, the thread that is talked on.

The main thread waits and gets Ctrl-C: while an answer comes it stops the run, at the prompt it is the prompt's.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from pizzabot.cli.chat_memory import LastThreads
from pizzabot.cli.chat_screen import Screen
from pizzabot.client import (
    Client,
    ClientError,
    EventReader,
    Question,
    RefusedError,
    RunEnded,
    RunFailed,
    StartedRun,
    uuid7,
)

T = TypeVar("T")

QUIET_SECONDS = 2.0
"""Without a word for so long, one asks what the server is doing; and then every"""
POLL_SECONDS = 1.0

STOP_SECONDS = 10.0
"""How long a stopped run may take to end before the client leaves without it."""
SAME_PRESS_SECONDS = 0.5
"""Signals this close together are one press: `timeout` and some terminals send it to the process and to its group."""

WAYS = (
    'a small model on this machine: pip install "pizzabot-host[local]" && pizzabot serve --model local:smollm2-135m',
    'a model of Ollama: pip install "pizzabot-host[ollama]" && pizzabot serve --model ollama:NAME',
    'an OpenAI-compatible service: pip install "pizzabot-host[openai]" && pizzabot serve --model openai:NAME',
)
"""Said where the server, an older or another one, does not say it itself."""


class Session:
    """A context manager. Every method is called from the main thread and returns when it is done."""

    def __init__(self, *, url: str, token: str | None, model: str | None, as_json: bool) -> None:
        self.screen = Screen(as_json=as_json)
        self.thread_id = ""
        self.stopped = False
        self._model = model
        self._client = Client(url, token)
        self._memory = LastThreads()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pizzabot chat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._client.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(TimeoutError):
            self._do(self._close(), timeout=2.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2.0)
        if not self._thread.is_alive():
            self._loop.close()

    async def _close(self) -> None:
        """End what an interrupted call left behind: it would complain on stderr when the loop goes."""
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        await self._client.__aexit__(None, None, None)
        await self._loop.shutdown_asyncgens()

    @property
    def url(self) -> str:
        return self._client.url

    def connect(self) -> None:
        """Raises `UnreachableError` or `IncompatibleError`."""
        self._do(self._client.check_identity())

    def status(self) -> Mapping[str, Any]:
        return self._do(self._client.status())

    def ways_to_a_model(self, status: Mapping[str, Any]) -> list[str]:
        told = status.get("waysToGetAModel")
        ways = [f"{way.get('title')}: {way.get('command')}" for way in told or () if isinstance(way, Mapping)]
        return [f"({number}) {way}" for number, way in enumerate(ways or WAYS, start=1)]

    def choose_thread(self, thread_id: str | None, *, go_on: bool) -> None:
        """A named thread, the one that was used last here if it still exists, or a new one."""
        remembered = self._memory.get(self._client.url) if go_on and thread_id is None else None
        if remembered is not None and not self._exists(remembered):
            remembered = None
        self.thread_id = thread_id or remembered or uuid7()

    def new_thread(self) -> None:
        self.thread_id = uuid7()

    def _exists(self, thread_id: str) -> bool:
        try:
            self._do(self._client.state(thread_id))
        except RefusedError as error:
            if error.code == "no_such_thread" or error.status == 404:
                return False
            raise
        return True

    def ask(self, text: str) -> RunEnded | RunFailed:
        """Say `text`, show what comes, return how it ended. Ctrl-C stops the run; a later second one leaves at once."""
        return self._carry_out(
            lambda run_id: self._client.start(self.thread_id, text, model=self._model, run_id=run_id)
        )

    def answer(self, answers: Mapping[str, Any]) -> RunEnded | RunFailed:
        """Answer questions by their ids and follow the run that goes on, like `ask`."""
        return self._carry_out(lambda run_id: self._client.respond(self.thread_id, answers, run_id=run_id))

    def questions(self) -> Sequence[Question]:
        """What waits for a person on this thread; nothing on one that is not stored yet."""
        try:
            return self._do(self._client.questions(self.thread_id))
        except RefusedError as error:
            if error.status == 404:
                return ()
            raise

    def _carry_out(self, start: Callable[[str], Coroutine[Any, Any, StartedRun]]) -> RunEnded | RunFailed:
        self.stopped = False
        run_id = uuid7()
        answering: list[Future[RunEnded | RunFailed]] = []
        # First: once the server has the run, a Ctrl-C has to reach it.
        before = signal.signal(signal.SIGINT, self._stopper(run_id, answering))
        try:
            answering.append(asyncio.run_coroutine_threadsafe(self._follow(start(run_id)), self._loop))
            return answering[0].result()
        except CancelledError:
            raise KeyboardInterrupt from None
        finally:
            signal.signal(signal.SIGINT, before)
            _cancel(answering)
            self.screen.end()

    def _stopper(self, run_id: str, answering: list[Future[RunEnded | RunFailed]]) -> Callable[..., None]:
        """What Ctrl-C does while an answer comes. A handler: an exception could hit between two of its steps."""
        pressed: list[float] = []

        def on_interrupt(*_: object) -> None:
            now = time.monotonic()
            if pressed and now - pressed[0] > SAME_PRESS_SECONDS:
                raise KeyboardInterrupt
            if not pressed:
                pressed.append(now)
                self.stopped = True
                asyncio.run_coroutine_threadsafe(self._stop_run(run_id, answering), self._loop)

        return on_interrupt

    async def _stop_run(self, run_id: str, answering: list[Future[RunEnded | RunFailed]]) -> None:
        self._loop.call_later(STOP_SECONDS, _cancel, answering)
        with suppress(ClientError):  # the answer's own connection says what is wrong
            await self._client.stop(self.thread_id, run_id)

    def stop(self) -> None:
        """Stop whatever runs on the thread, whoever started it."""
        self._do(self._client.stop(self.thread_id))

    async def _follow(self, starting: Coroutine[Any, Any, StartedRun]) -> RunEnded | RunFailed:
        waiting = asyncio.create_task(self._say_what_it_waits_for())
        try:
            run = await starting
            if self.stopped:
                # Ctrl-C came before the server knew the run, so that the first request to stop found nothing.
                await self._client.stop(run.thread_id, run.run_id)
            self._remember()
            self.screen.begin(run.thread_id, run.run_id)
            reader = EventReader(run.run_id)
            end: RunEnded | RunFailed | None = None
            async with aclosing(self._client.frames_of(run)) as frames:
                async for frame in frames:
                    self.screen.frame(frame)
                    for event in reader.read(frame):
                        waiting.cancel()
                        self.screen.event(event)
                        if isinstance(event, RunEnded | RunFailed):
                            end = event
        finally:
            waiting.cancel()
        self.screen.end()
        if end is None:
            raise ClientError("bad_answer", "the run ended without saying how")
        return end

    async def _say_what_it_waits_for(self) -> None:
        """After a while without a word: whether the server is still loading, each reason once."""
        said = ""
        await asyncio.sleep(QUIET_SECONDS)
        while True:
            with suppress(ClientError):
                line = waits_for(await self._client.status(), self._model)
                if line and line != said:
                    self.screen.notice(f"· {line}")
                    said = line
            await asyncio.sleep(POLL_SECONDS)

    def _remember(self) -> None:
        problem = self._memory.put(self._client.url, self.thread_id)
        if problem is not None:
            self.screen.notice(f"the thread cannot be remembered: {problem}")

    def _do(self, work: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)


def _cancel(answering: list[Future[RunEnded | RunFailed]]) -> None:
    for future in answering:
        future.cancel()


def waits_for(status: Mapping[str, Any], model: str | None) -> str | None:
    """What keeps the server from answering yet. `model` is the one that was asked for, None for the server's own."""
    runtime, state = status.get("runtime"), status.get("modelState")
    default = status.get("model")
    if isinstance(state, Mapping) and state.get("state") == "loading" and model in (None, default):
        return f"the model {default} is being loaded; the first time, its weights are fetched before that"
    if isinstance(runtime, Mapping) and runtime.get("state") == "loading":
        return "the server has just been started and is still loading"
    return None
