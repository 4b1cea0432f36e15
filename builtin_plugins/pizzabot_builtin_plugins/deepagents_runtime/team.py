"""The tool set that a turn goes on with: a specialist it is in the middle of calling is waited for while it loads.

After a restart the servers of a skill take seconds to connect. A turn that was approved, or is taken up again after a
crash, would otherwise find that nobody of that name exists, and the work it was given would be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet

LOADING = "loading"
TEAM_SECONDS = 30.0
"""For specialists to load; then the turn goes on without, and the model is told who is missing."""


class RosterNews:
    """Wakes whoever waits for another roster. Used on the loop alone."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """Set with the next change."""
        return self._next


async def team_to_go_on_with(
    current: Callable[[], ToolSet],
    news: RosterNews,
    called: Callable[[], Awaitable[frozenset[str]]],
) -> ToolSet:
    """`called` are the specialists that the turn has called and that have not reported; it is asked only if needed."""
    tools = current()
    if not _loading(tools):
        return tools
    wanted = await called()
    try:
        async with asyncio.timeout(TEAM_SECONDS):
            while True:
                changed, tools = news.next, current()
                if not wanted & _loading(tools):
                    return tools
                await changed.wait()
    except TimeoutError:
        return current()


def _loading(tools: ToolSet) -> frozenset[str]:
    return frozenset(skill.name for skill in tools.unready if skill.state == LOADING)
