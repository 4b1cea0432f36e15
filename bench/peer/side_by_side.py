"""`pizzabot serve` and `langgraph dev` with the same graph and model, in turns, over the same HTTP requests."""

from __future__ import annotations

import asyncio
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from peer import servers
from peer.driving import Turn, single_turns, turns_for
from peer.figures import figure, load, spread

PEER_JOBS = 10
"""Runs that the peer carries out at once. Its best of 1, 10 and 20 for 20 clients: 51, 58 and 17 runs/s as tried."""
MANY = 20
WARMING_TURNS = 5


@dataclass
class Side:
    """What one server did: runs per second of each round, by the number of clients, and turns on the idle server."""

    rates: dict[int, list[float]] = field(default_factory=lambda: {1: [], MANY: []})
    busy: dict[int, list[Turn]] = field(default_factory=lambda: {1: [], MANY: []})
    single: list[Turn] = field(default_factory=list)

    def rate(self, at_once: int) -> float:
        return statistics.mean(self.rates[at_once])


async def _measure(sides: list[tuple[int, Side]], *, rounds: int, seconds: float, turns: int) -> None:
    for port, _ in sides:
        await single_turns(port, WARMING_TURNS)
    for _ in range(rounds):
        for port, side in sides:
            side.single += await single_turns(port, turns // rounds)
        for at_once in (1, MANY):
            for port, side in sides:
                rate, ended = await turns_for(port, at_once=at_once, seconds=seconds)
                side.rates[at_once].append(rate)
                side.busy[at_once] += ended


def side_by_side(python: Path, *, rounds: int, seconds: float, turns: int) -> tuple[Side, Side]:
    mine, theirs = Side(), Side()
    with servers.ours() as our_port, servers.peer(python, jobs=PEER_JOBS) as peer_port:
        sides = [(our_port, mine), (peer_port, theirs)]
        asyncio.run(_measure(sides, rounds=rounds, seconds=seconds, turns=turns))
    return mine, theirs


def beside(python: Path, *, rounds: int, seconds: float, turns: int) -> None:
    """Measure and print, or say what is missing: `rounds` times `turns / rounds` single turns and `seconds` of 1 and
    of 20 clients, ours and the peer in turns.
    """
    problem = servers.missing(python)
    if problem is not None:
        print(f"beside langgraph dev: left out. {problem}")
        return
    print(f"peer: {servers.versions(python)}, {PEER_JOBS} runs at once, in memory; ours on SQLite; load {load()}")
    mine, theirs = side_by_side(python, rounds=rounds, seconds=seconds, turns=turns)
    for at_once in (1, MANY):
        for name, side in (("ours", mine), ("peer", theirs)):
            rates = ", ".join(f"{rate:.1f}" for rate in side.rates[at_once])
            print(f"  {name}, {at_once} at once: {rates} runs/s; {spread([turn.whole for turn in side.busy[at_once]])}")
        ours, peer = mine.rate(at_once), theirs.rate(at_once)
        figure(f"runs/s, {at_once} at once  ours {ours:.1f}  peer {peer:.1f}  ratio", ours / peer, at_least=2.0)
    firsts = [[turn.first_event for turn in side.single] for side in (mine, theirs)]
    print(f"  first event after the POST, idle: ours {spread(firsts[0])}; peer {spread(firsts[1])}")
    ours, peer = (statistics.median(first) * 1e3 for first in firsts)
    figure(f"first event  ours {ours:.1f} ms  peer {peer:.1f} ms  ratio", ours / peer, at_most=0.1)
