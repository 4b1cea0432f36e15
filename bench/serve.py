"""`pizzabot serve`: time to a Healthy /ping and to the first turn, first event after a POST, idle memory.

    python bench/serve.py [--runs 5]

A real process on loopback with the echo model and an empty data root.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

TURNS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    measured = [measure() for _ in range(runs + 1)][1:]  # the first one writes byte code
    machine = platform.processor() or platform.machine()
    print(f"machine: {machine}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name, unit in (
        ("healthy", "s"), ("runtime_ready", "s"), ("first_turn", "s"), ("longest_ping_while_loading", "ms"),
        ("first_event", "ms"), ("resident_idle", "MB"),
    ):  # fmt: skip
        values = [value for run in measured for value in (run[name] if isinstance(run[name], list) else [run[name]])]
        p50, p99 = quantile(values, 50), quantile(values, 99)
        print(f"{name:28} p50 {p50:8.2f} {unit}   p99 {p99:8.2f} {unit}   n={len(values)}")


def quantile(values: list[float], percent: int) -> float:
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(sorted(values), n=100, method="inclusive")[percent - 1]


def measure() -> dict[str, float | list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        serve = [sys.executable, "-m", "pizzabot", "serve", "--port", "0"]
        command = [*serve, "--data-root", folder, "--model", "echo:echo"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            until(lambda: get(url, "/ping")["status"] == "Healthy")
            healthy = time.perf_counter() - began
            longest = 0.0
            while get(url, "/status")["runtime"]["state"] == "loading":
                asked = time.perf_counter()
                get(url, "/ping")
                longest = max(longest, time.perf_counter() - asked)
            ready = time.perf_counter() - began
            turn(url, "first")
            first_turn = time.perf_counter() - began
            events = [turn(url, f"t{number}") * 1000 for number in range(TURNS)]
            return {
                "healthy": healthy,
                "runtime_ready": ready,
                "first_turn": first_turn,
                "longest_ping_while_loading": longest * 1000,
                "first_event": events,
                "resident_idle": resident(process.pid),
            }
        finally:
            process.terminate()
            process.wait()


def turn(url: str, thread: str) -> float:
    """Seconds from the POST of `run.start` to the first event; returns after the run has ended."""
    body = {"id": 1, "method": "run.start", "params": {"prompt": "hello there"}}
    began = time.perf_counter()
    post(url, f"/threads/{thread}/commands", body)
    request = urllib.request.Request(
        f"{url}/threads/{thread}/stream/events",
        data=json.dumps({"channels": ["lifecycle", "messages"]}).encode(),
        headers={"content-type": "application/json"},
    )
    first = 0.0
    with urllib.request.urlopen(request) as stream:
        for line in stream:
            if line.startswith(b"data:"):
                first = first or time.perf_counter() - began
                if b'"completed"' in line:
                    return first
    raise SystemExit("the stream ended before the run did")


def until(met) -> None:
    while True:
        try:
            if met():
                return
        except urllib.error.URLError:
            pass


def get(url: str, path: str) -> dict:
    with urllib.request.urlopen(url + path) as answer:
        return json.load(answer)


def post(url: str, path: str, body: dict) -> dict:
    request = urllib.request.Request(
        url + path, data=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


if __name__ == "__main__":
    main()
