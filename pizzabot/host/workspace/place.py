"""Whose files an operation is about: a thread, a branch of it, and who writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from pizzabot_hookspecs import Caller

Path: TypeAlias = Callable[[], Awaitable[Collection[str] | None]]
"""The turns whose versions count; None for all of them."""


class Author(StrEnum):
    AGENT = "agent"
    PERSON = "person"


class Change(StrEnum):
    """What a version did to its path."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


async def every_turn() -> None:
    """The path of a thread without branches."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """`turn_id` is what new versions belong to, None for every branch. With `run_id` they are the run's, fenced by
    `epoch`."""

    thread_id: str
    caller: Caller
    turns: Path = every_turn
    turn_id: str | None = None
    run_id: str | None = None
    epoch: int | None = None
    author: Author = Author.PERSON
