"""What the transcript costs: folding a log of 10,000 events, JSON included, and the pages of a long thread.

    python bench/fold.py

To reach (spec/12 §9): 10,000 events folded in 100 ms. The log is that of runs with a text of 200 tokens, a call and a
subagent that speaks; a second one is a single answer of 10,000 tokens. A page is 20 turns of a state of 10,000 turns.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from peer.figures import end, figure, machine, spread

from pizzabot.host.transcript import entry_of_event, fold, from_page, initial, page
from pizzabot_hookspecs.storage_backends import StoredEvent

EVENTS = 10_000
TO_REACH_MS = 100.0
PAGE_MS = 10.0
TURNS = 10_000
ROUNDS = 9


class Log:
    """Events of one thread as the host stores them."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.turns = 0

    def add(self, run: str, method: str, data: dict[str, Any], namespace: tuple[str, ...] = ()) -> None:
        seq = len(self.events) + 1
        node = "model" if method == "messages" else None
        encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        event = StoredEvent(
            seq=seq, thread_id="t", run_id=run, method=method, data=encoded, timestamp=1_796_000_000_000 + seq,
            namespace=namespace, node=node,
        )  # fmt: skip
        self.events.append(event)

    def fact(self, run: str, name: str, **payload: Any) -> None:
        self.add(run, "custom", {"name": f"pizzabot.{name}", "payload": {"v": 1, "run_id": run, **payload}})

    def say(self, run: str, message: str, tokens: int, below: tuple[str, ...] = ()) -> None:
        namespace = (*below, f"model_request:{message}")
        own = {"run_id": message}
        self.add(run, "messages", {"event": "message-start", "role": "ai", "id": f"lc_{message}", **own}, namespace)
        block = {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}}
        self.add(run, "messages", block | own, namespace)
        for _ in range(tokens):
            delta = {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "token "}}
            self.add(run, "messages", delta | own, namespace)
        whole = {"event": "content-block-finish", "index": 0, "content": {"type": "text", "text": "token " * tokens}}
        self.add(run, "messages", whole | own, namespace)
        self.add(run, "messages", {"event": "message-finish", "usage": {"output_tokens": tokens}, **own}, namespace)

    def call(self, run: str, call_id: str, name: str, args: dict[str, Any], namespace: tuple[str, ...]) -> None:
        call = {"event": "tool-started", "tool_call_id": call_id, "tool_name": name, "input": args}
        self.add(run, "tools", call, namespace)

    def turn(self, tokens: int, *, works: bool) -> None:
        self.turns += 1
        turn_id, run = f"m{self.turns}", f"run_{self.turns}"
        parent = f"m{self.turns - 1}" if self.turns > 1 else None
        message = {"id": turn_id, "role": "user", "content": [{"type": "text", "text": "go"}], "metadata": {}}
        self.add(run, "lifecycle", {"event": "running", "graph_name": "pizza-bot"})
        self.fact(run, "turn", turn_id=turn_id, parent_id=parent, source="user", message=message, base=None)
        self.fact(run, "run", turn_id=turn_id, status="running", started_at=self.turns)
        if works:
            below = (f"tools:{run}",)
            self.call(run, "c1", "task", {"description": "work", "subagent_type": "clerk"}, below)
            self.say(run, f"below-{run}", tokens, below)
            self.call(run, "c2", "look", {"what": "x"}, (*below, "tools:inner"))
            done = {"event": "tool-finished", "tool_call_id": "c2", "output": "seen"}
            self.add(run, "tools", done, (*below, "tools:inner"))
            done = {"event": "tool-finished", "tool_call_id": "c1", "output": "reported"}
            self.add(run, "tools", done, below)
        self.say(run, run, tokens)
        self.fact(run, "run", turn_id=turn_id, status="success", ended_at=self.turns)
        self.add(run, "lifecycle", {"event": "completed", "graph_name": "pizza-bot"})


def working_log() -> list[StoredEvent]:
    log = Log()
    while len(log.events) < EVENTS:
        log.turn(200, works=True)
    return log.events[:EVENTS]


def long_answer() -> list[StoredEvent]:
    log = Log()
    log.turn(EVENTS, works=False)
    return log.events[:EVENTS]


def timed(work: Callable[[], Any]) -> list[float]:
    def rounds() -> Iterator[float]:
        while True:
            gc.collect()
            began = time.perf_counter()
            work()
            yield time.perf_counter() - began

    return list(islice(rounds(), ROUNDS))


def show(name: str, took: list[float], at_most: float) -> None:
    figure(name, sorted(took)[len(took) // 2] * 1e3, at_most=at_most, more=spread(took))


def main() -> None:
    print(machine())
    for name, events in (("runs with tools and subagents", working_log()), ("one long answer", long_answer())):
        took = timed(lambda events=events: fold(initial(), map(entry_of_event, events)))  # type: ignore[misc]
        show(f"ms to fold {EVENTS:,} events, JSON included, {name}", took, TO_REACH_MS)
    live = long_answer()
    half = fold(initial(), map(entry_of_event, live[: EVENTS // 2]))
    one = timed(lambda: fold(half, [entry_of_event(live[EVENTS // 2])]))
    show("ms to fold one more event into an answer of 5,000 tokens", one, 1.0)
    log = Log()
    for _ in range(TURNS):
        log.turn(1, works=False)
    state = fold(initial(), map(entry_of_event, log.events))
    show(f"ms for the newest page of {TURNS:,} turns", timed(lambda: page(state, thread_id="t")), PAGE_MS)
    middle = state["turns"][f"m{TURNS // 2}"]["seq"]
    show("ms for a page around its middle", timed(lambda: page(state, thread_id="t", around_seq=middle)), PAGE_MS)
    newest = page(state, thread_id="t")
    show("ms from a page back to a state", timed(lambda: from_page(newest)), 1.0)
    print(end())


if __name__ == "__main__":
    main()
