# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""The functions that tools are made of, kept from taking the server with them: threads of their own, no SystemExit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

THREADS_LIMIT = 32
"""Blocking tools that run at once; the next one waits. One that was stopped counts until it has ended by itself."""

_threads = threading.BoundedSemaphore(THREADS_LIMIT)
_POLL_SECONDS = 0.05


class ToolExited(Exception):
    """A tool called `sys.exit`."""


def contained(tool: BaseTool) -> BaseTool:
    """`tool` as graphs are given it.

    A blocking function runs in a daemon thread: LangChain's own choice is the loop's pool of a handful of threads,
    which the whole server uses and whose end a shutdown waits for. A SystemExit becomes an error of the tool's: raised
    in a task it would end the loop. A tool class with a `_run` or `_arun` of its own is taken as it is.
    """
    if not isinstance(tool, StructuredTool):
        return tool
    if tool.coroutine is not None:
        return tool.model_copy(update={"coroutine": _without_exit(tool.coroutine)})
    return tool if tool.func is None else tool.model_copy(update={"coroutine": _in_a_thread(tool.func)})


def _without_exit(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    async def inside(*args: Any, **kwargs: Any) -> Any:
        try:
            return await run(*args, **kwargs)
        except SystemExit as error:
            raise _exited(error) from None

    return inside


def _in_a_thread(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    async def inside(*args: Any, **kwargs: Any) -> Any:
        while not _threads.acquire(blocking=False):  # noqa: ASYNC110 - a thread gives it back, of whatever loop
            await asyncio.sleep(_POLL_SECONDS)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        work = partial(copy_context().run, run, *args, **kwargs)
        threading.Thread(target=_carry_out, args=(work, loop, done), name="tool", daemon=True).start()
        return await done

    return inside


def _carry_out(work: Callable[[], Any], loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any]) -> None:
    try:
        tell = partial(_tell, done, result=work())
    except SystemExit as error:
        tell = partial(_tell, done, error=_exited(error))
    except BaseException as error:  # noqa: BLE001 - whoever waits for the thread gets it
        tell = partial(_tell, done, error=error)
    finally:
        _threads.release()
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(tell)


def _tell(done: asyncio.Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    if done.done():  # stopped meanwhile: the result is dropped
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)


def _exited(error: SystemExit) -> ToolExited:
    return ToolExited(f"the tool ended itself with exit code {error}")
