"""Going through a folder and what is below it, in the order of the paths, within limits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import islice

from pizzabot.host.files.descriptors import Place, enter
from pizzabot.host.files.descriptors import listable as open_listable
from pizzabot.host.files.paths import joined, may_be_named
from pizzabot_hookspecs import PizzabotError

MAX_LOOKED_AT = 100_000
"""Entries of folders that one find or search looks at."""
MAX_SEARCHED_BYTES = 256 * 1024 * 1024
"""Bytes that one search reads."""
MAX_SEARCHED_FILE = 10 * 1024 * 1024
"""Bytes of a file that is searched; larger ones are passed over, and the answer says that it is not all."""
MAX_WALK_SECONDS = 10.0
"""How long one find or search looks."""
MAX_DEPTH = 64
"""Folders inside each other that a walk goes down; each is an open descriptor meanwhile."""

_TEMPORARY = (".pizzabot-", ".tmp")


@dataclass(slots=True)
class Budget:
    """What one walk may still do. `truncated`: something was left out. `stop` may be called by another thread."""

    entries: int = MAX_LOOKED_AT
    bytes: int = MAX_SEARCHED_BYTES
    seconds: float = MAX_WALK_SECONDS
    clock: Callable[[], float] = time.monotonic
    truncated: bool = False
    _stopped: bool = False
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = self.clock() + self.seconds

    @property
    def spent(self) -> bool:
        """Nothing more may be looked at; remembers it as truncated."""
        if self._stopped or self.entries <= 0 or self.bytes <= 0 or self.clock() > self._until:
            self.truncated = True
            return True
        return False

    def stop(self) -> None:
        self._stopped = True


@dataclass(frozen=True, slots=True)
class Walked:
    """A regular file that was come by: `place` is its folder, open only until the next one is asked for."""

    place: Place
    name: str
    path: str
    entry: os.DirEntry[str]


def temporary_name(token: str) -> str:
    """Of a file that is being written; it is not shown."""
    return f"{_TEMPORARY[0]}{token}{_TEMPORARY[1]}"


def is_shown(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is there for an agent: a file or a folder, no link, nothing special, nothing half written."""
    name = entry.name
    if name.startswith(_TEMPORARY[0]) and name.endswith(_TEMPORARY[1]):
        return False
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def walk(place: Place, budget: Budget, depth: int = 0) -> Generator[Walked]:
    """Files below an open folder. What cannot be opened, or has a name that no path can have, is left out and told."""
    for entry in _sorted_entries(place, budget):
        if budget.spent:
            return
        budget.entries -= 1
        path = joined(place.path, entry.name)
        if not may_be_named(entry.name, place.path):
            budget.truncated = True
        elif not entry.is_dir(follow_symlinks=False):
            yield Walked(place, entry.name, path, entry)
        elif depth >= MAX_DEPTH:
            budget.truncated = True
        else:
            yield from _below(place, entry.name, budget, depth)


def _below(place: Place, name: str, budget: Budget, depth: int) -> Generator[Walked]:
    try:
        inner = enter(place, name)
    except (OSError, PizzabotError):
        budget.truncated = True  # gone, became a link, or not ours to read
        return
    try:
        yield from walk(inner, budget, depth + 1)
    finally:
        os.close(inner.fd)


def _sorted_entries(place: Place, budget: Budget) -> list[os.DirEntry[str]]:
    """As their paths sort: what is in `a` comes after `a.txt`, because of its `/`."""
    try:
        fd = open_listable(place)
    except OSError:
        budget.truncated = True
        return []
    try:
        with os.scandir(fd) as entries:
            found = [entry for entry in islice(entries, budget.entries + 1) if is_shown(entry)]
    finally:
        os.close(fd)
    return sorted(found, key=lambda entry: entry.name + "/" * entry.is_dir(follow_symlinks=False))
