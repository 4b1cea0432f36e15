"""Digests that are not to be removed now: their row is about to be written, or was while unused ones were sought."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Pins:
    """Used from the loop and from threads. What is pinned while a collection looks stays, also when it is let go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._since: set[str] | None = None

    def pin(self, digest: str) -> None:
        with self._lock:
            self._held[digest] += 1
            if self._since is not None:
                self._since.add(digest)

    def let_go(self, digest: str) -> None:
        with self._lock:
            self._held[digest] -= 1
            if self._held[digest] <= 0:
                del self._held[digest]

    @contextmanager
    def looking(self) -> Iterator[None]:
        """From before it is asked which digests are used until the others are removed; one at a time."""
        with self._lock:
            self._since = set(self._held)
        try:
            yield
        finally:
            with self._lock:
                self._since = None

    def unless_pinned(self, digest: str, remove: Callable[[], None]) -> bool:
        """Remove it, unless it is or was pinned since `looking` began; nobody can pin it meanwhile."""
        with self._lock:
            if digest in self._held or self._since is None or digest in self._since:
                return False
            remove()
            return True
