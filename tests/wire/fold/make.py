"""Writes the vectors: `python tests/wire/fold/make.py [--keep-recordings]`; see README.md.

With `--keep-recordings`, logs that are there already are folded anew and not recorded anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fold_written import WRITTEN  # noqa: E402 - the folder is a script's, not a package

from pizzabot.host.transcript import entry_of_frame, fold, from_page, initial, page  # noqa: E402

THREAD = "t"


def vector(name: str, events: list[Any]) -> dict[str, Any]:
    """The events, what they fold to, and pages: the newest, an older one, one of a subagent, one from the middle."""
    entries = [entry_of_frame(event) for event in events]
    state = fold(initial(), entries)
    middle = len(entries) // 2
    at, half = entries[middle - 1].seq, fold(initial(), entries[:middle])
    cases: list[tuple[dict[str, Any], Any]] = [({}, page(state, thread_id=THREAD))]
    path = cases[0][1]["turns"]
    if len(path) > 1:
        before = {"limit": 1, "before_seq": path[-1]["seq"]}
        cases.append((before, page(state, thread_id=THREAD, **before)))
        around = {"limit": 1, "around_seq": path[0]["seq"] + 1}
        cases.append((around, page(state, thread_id=THREAD, **around)))
    for item in (item for turn in path for item in turn["items"] if "child" in item):
        below = {"namespace": item["child"]}
        cases.append((below, page(state, thread_id=THREAD, **below)))
    pages = [{"args": args, "page": made} for args, made in cases]
    made = page(half, thread_id=THREAD)
    pages.append({"args": {"at": at}, "page": made, "then": fold(from_page(made), entries[middle:])})
    return {"name": name, "events": events, "state": state, "pages": pages}


def write(made: dict[str, Any]) -> None:
    """One event on a line, so that a change can be read."""
    lines = ",\n".join(f"    {_json(event)}" for event in made["events"])
    pages = ",\n".join(f"    {_json(one)}" for one in made["pages"])
    text = (
        f'{{\n  "name": {_json(made["name"])},\n  "events": [\n{lines}\n  ],\n'
        f'  "state": {_json(made["state"])},\n  "pages": [\n{pages}\n  ]\n}}\n'
    )
    _file(made["name"]).write_text(text, "utf-8")


def vectors() -> list[dict[str, Any]]:
    """What is written in this folder."""
    return [json.loads(path.read_text("utf-8")) for path in sorted((HERE / "vectors").glob("*.json"))]


def _file(name: str) -> Path:
    return HERE / "vectors" / f"{name.replace(' ', '_')}.json"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--keep-recordings", action="store_true")
    keep = arguments.parse_args().keep_recordings
    (HERE / "vectors").mkdir(exist_ok=True)
    for name, make in WRITTEN.items():
        write(vector(name, make().frames))
    from fold_recording import SCENES, record

    for name in SCENES:
        known = keep and _file(name).exists()
        events = json.loads(_file(name).read_text("utf-8"))["events"] if known else record(name)
        write(vector(name, events))


if __name__ == "__main__":
    main()
