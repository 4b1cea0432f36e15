"""Lines of a report: a value beside what is to be reached, the spread of a measurement, the machine."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
from collections.abc import Sequence

missed: list[str] = []


def figure(
    name: str, value: float, *, at_least: float | None = None, at_most: float | None = None, more: str = ""
) -> None:
    """A line with the value and what is to be reached; without a limit it is said for information."""
    met = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    target = f" (to reach >= {at_least:g})" if at_least is not None else ""
    target = f" (to reach <= {at_most:g})" if at_most is not None else target
    shown = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    print(f"{('ok' if met else 'MISSED') if target else 'info':7}{name} {shown}{target}{'; ' if more else ''}{more}")
    if not met:
        missed.append(name)


def spread(took: Sequence[float], *, digits: int = 2) -> str:
    cuts = statistics.quantiles(took, n=100, method="inclusive") if len(took) > 1 else [took[0]] * 99
    return f"p50 {cuts[49] * 1e3:.{digits}f} ms, p99 {cuts[98] * 1e3:.{digits}f} ms"


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


def end() -> str:
    said = f"missed: {'; '.join(missed)}" if missed else "every figure that was measured is reached"
    return f"load {load()} at the end; {said}"
