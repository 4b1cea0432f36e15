"""Work of a guest in a thread of its own, which nothing waits for when the process ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import THREAD_STACK_BYTES

T = TypeVar("T")

_starting = threading.Lock()


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """The outcome of `work`, which begins at once. Cancelling the future does not end the work.

    Not the loop's executor: its threads are shared with short work and are waited for at the end of the process.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    future.add_done_callback(retrieved)

    def body() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is the future's, whatever it is
            _tell(loop, _fail, future, error)
        else:
            _tell(loop, _succeed, future, result)

    start_thread(body)
    return future


def start_thread(body: Callable[[], object]) -> None:
    """Run `body` in a daemon thread whose stack is large enough for a guest's."""
    with _starting:
        before = threading.stack_size(THREAD_STACK_BYTES)
        try:
            threading.Thread(target=body, name="pizzabot-eval", daemon=True).start()
        finally:
            threading.stack_size(before)


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[..., None], *values: object) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody is waiting any more
        loop.call_soon_threadsafe(settle, *values)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def retrieved(future: asyncio.Future[T]) -> None:
    """A callback for a future whose error may concern nobody any more."""
    if not future.cancelled():
        future.exception()
