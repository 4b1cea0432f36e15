# ruff: noqa: TID253 - imported behind `runtime.prepare`
"""Subagents of one eval begin one after another, so that each gets the same namespace when the eval is run again.

LangGraph numbers the graphs that a step calls in the order in which they begin. Before a graph begins there are
handlers to wait for, some in threads: calls made together would begin in any order, and a question that a person has
answered would be another subagent's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, AsyncCallbackManager


class Launches:
    """Those of one eval, in the order in which they ask."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._begun = count()

    def number(self) -> int:
        """The place of the one that is launched now, from 0."""
        return next(self._begun)

    @asynccontextmanager
    async def next(self, callbacks: Any) -> AsyncIterator[Any]:
        """`callbacks` with an ear on when the graph that is called inside has begun; then the next one may."""
        await self._turn.acquire()
        launch = Launch(self._turn.release)
        try:
            yield _with(callbacks, launch)
        finally:
            launch.over()


class Launch(AsyncCallbackHandler):
    """Hears a graph start, and then its first step: by then it has its number."""

    run_inline = True

    def __init__(self, begun: Callable[[], None]) -> None:
        self._starts = 0
        self._begun: Callable[[], None] | None = begun

    async def on_chain_start(self, *_given: Any, **_named: Any) -> None:
        self._starts += 1
        if self._starts == 2:
            self.over()

    def over(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            begun()


def _with(callbacks: Any, launch: Launch) -> Any:
    if isinstance(callbacks, AsyncCallbackManager):
        callbacks = callbacks.copy()
        callbacks.add_handler(launch, inherit=True)
        return callbacks
    return [*(callbacks or ()), launch]
