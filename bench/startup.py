"""How long `pizzabot --version` takes beside an empty interpreter, in turns, in one run: at most 2.5 times as long.

python bench/startup.py [--rounds N] [--check]
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

TO_REACH = 2.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--check", action="store_true", help="exit 1 when the ratio is not reached")
    arguments = parser.parse_args()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "pizzabot --version": [str(Path(sys.executable).with_name("pizzabot")), "--version"],
        "pizzabot --help": [str(Path(sys.executable).with_name("pizzabot")), "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():  # byte code and file cache
        seconds(command)
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            times[name].append(seconds(command) * 1000)
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{'':20} {'p50 ms':>8} {'p99 ms':>8}  {'ratio of p50':>12}")
    peer = median(times["python -c pass"])
    for name, taken in times.items():
        print(f"{name:20} {median(taken):8.1f} {percentile(taken, 99):8.1f}  {median(taken) / peer:12.2f}")
    ratio = median(times["pizzabot --version"]) / peer
    print(f"pizzabot --version: {ratio:.2f} x python -c pass; to reach: {TO_REACH}")
    return int(arguments.check and ratio > TO_REACH)


def seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


if __name__ == "__main__":
    sys.exit(main())
