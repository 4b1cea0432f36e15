"""Start and stop what plugins made: entered in order, closed in reverse; a stop that fails prevents no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from pizzabot.kernel.reasons import describe
from pizzabot_hookspecs.errors import PizzabotError, Unavailable

START_SECONDS = 300.0
"""Longest start of one object: opening a storage may copy and migrate a large database."""

STOP_SECONDS = 10.0
"""Longest stop of one object; then it is cancelled, counted as failed, and the next one is stopped."""

T = TypeVar("T")


class Lifecycle:
    """Owns the async context managers of a host. Enter and close from one task: cancel scopes are bound to theirs.

    `on_error(name, error)` is called for each stop that failed, once; `failures` keeps them all.
    """

    def __init__(
        self,
        on_error: Callable[[str, BaseException], None] | None = None,
        *,
        start_seconds: float = START_SECONDS,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self.failures: list[tuple[str, BaseException]] = []
        self._stack = AsyncExitStack()
        self._on_error = on_error
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._closed = False

    async def enter(self, name: str, obj: T) -> T:
        """Enter `obj` if it is an async context manager and return what that gives (`obj` where it gives None).

        Anything else is returned as it is. Raises `Unavailable`: `plugin_failed` naming `name` when the start raises
        or takes longer than `start_seconds`, `stopping` after `aclose`. A `PizzabotError` passes as it is.
        """
        start, stop = getattr(type(obj), "__aenter__", None), getattr(type(obj), "__aexit__", None)
        if start is None or stop is None:
            return obj
        if self._closed:
            raise Unavailable("stopping", f'"{name}" is not started: the host is stopping')
        try:
            async with asyncio.timeout(self._start_seconds):
                entered: T | None = await start(obj)
        except PizzabotError:
            raise
        except (Exception, SystemExit) as error:
            raise Unavailable("plugin_failed", f'"{name}" did not start: {describe(error)}') from error
        self._stack.push_async_callback(self._stop, name, obj)
        return obj if entered is None else entered

    async def aclose(self) -> list[tuple[str, BaseException]]:
        """Stop everything, last started first; (name, error) of each stop that failed. Safe to call twice."""
        self._closed = True
        await self._stack.aclose()
        return self.failures

    async def _stop(self, name: str, obj: Any) -> None:
        try:
            async with asyncio.timeout(self._stop_seconds):
                await type(obj).__aexit__(obj, None, None, None)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # collected: the others must be stopped too
            self.failures.append((name, error))
            if self._on_error is not None:
                self._on_error(name, error)
