"""The event loop of `serve`: run to the end, then leave behind what does not end, and tell what that was.

`asyncio.run` awaits every task and every thread of `asyncio.to_thread` at its end, and so does the interpreter with
threads: a tool that swallows its cancellation, or blocks, would keep the server from stopping for as long as it likes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor, thread
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

LEFT_SECONDS = 1.0
"""What is still there so long after the end is left behind."""
MAX_NAMED = 20
"""Tasks and threads that are told one by one."""

_POLL_SECONDS = 0.02
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - compared with file names of code


def run_to_the_end(main: Coroutine[Any, Any, None], *, left: Callable[[list[str]], None]) -> None:
    """Run `main` in a loop of its own and raise what it raises; `left` is told, by name, what did not end with it.

    Whoever is told has to end the process with `end_now`: the interpreter's own end waits for threads without a limit.
    """
    import uvloop

    there_before = set(threading.enumerate())
    loop = uvloop.new_event_loop()
    executor = ThreadPoolExecutor(thread_name_prefix="pizzabot")
    loop.set_default_executor(executor)
    asyncio.set_event_loop(loop)
    remaining: list[str] = []
    try:
        loop.run_until_complete(main)
    finally:
        remaining = loop.run_until_complete(_end(executor, there_before))
        if remaining:
            left(remaining)
        else:
            asyncio.set_event_loop(None)
            loop.close()


def end_now(code: int) -> None:
    """End the process without waiting for anything in it. Does not return."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


async def _end(executor: ThreadPoolExecutor, there_before: AbstractSet[threading.Thread]) -> list[str]:
    """Cancel every task, let idle threads go, wait `LEFT_SECONDS` for the others; what is still there."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LEFT_SECONDS
    tasks = _others()
    for task in tasks:
        task.cancel()
    executor.shutdown(wait=False, cancel_futures=True)
    generators = asyncio.create_task(loop.shutdown_asyncgens(), name="close generators")
    ended, _ = await asyncio.wait({*tasks, generators}, timeout=LEFT_SECONDS)
    for task in ended:
        if not task.cancelled() and (error := task.exception()) is not None:
            loop.call_exception_handler({"message": "failed while it was stopped", "exception": error, "task": task})
    while (busy := _busy(there_before)) and loop.time() < deadline:  # noqa: ASYNC110 - threads tell nobody
        await asyncio.sleep(_POLL_SECONDS)
    return [*map(_task, _others()), *(_thread(found, frame) for found, frame in busy)]


def _others() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def _busy(there_before: AbstractSet[threading.Thread]) -> list[tuple[threading.Thread, FrameType]]:
    """Threads that the interpreter would wait for, with what they do; those of a pool that wait for work end then."""
    doing = sys._current_frames()  # noqa: SLF001 - its documented name
    new = [found for found in threading.enumerate() if not found.daemon and found not in there_before]
    frames = [(found, doing[found.ident]) for found in new if found.ident in doing]
    return [(found, frame) for found, frame in frames if frame.f_code.co_filename != thread.__file__]


def _task(task: asyncio.Task[Any]) -> str:
    return f"task {task.get_name()!r} in {_place(list(_awaited(task.get_coro())))}"


def _thread(found: threading.Thread, frame: FrameType) -> str:
    return f"thread {found.name!r} in {_place(list(_called(frame))[::-1])}"


def _awaited(coroutine: Any) -> Iterator[tuple[CodeType, int]]:
    """From a task's own coroutine to the innermost one that it waits in."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            yield frame.f_code, frame.f_lineno
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)


def _called(frame: FrameType | None) -> Iterator[tuple[CodeType, int]]:
    while frame is not None:
        yield frame.f_code, frame.f_lineno
        frame = frame.f_back


def _place(frames: list[tuple[CodeType, int]]) -> str:
    """The innermost of `frames` that is not the standard library's: that of the tool, as a rule."""
    own = [found for found in frames if not _standard(found[0].co_filename)]
    if not (own or frames):
        return "something unknown"
    code, line = (own or frames)[-1]
    return f"{code.co_qualname} ({os.path.basename(code.co_filename)}:{line})"  # noqa: PTH119


def _standard(file: str) -> bool:
    return file.startswith((_STANDARD_LIBRARY, "<")) and "site-packages" not in file
