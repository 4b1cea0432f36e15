"""Logs to fold, and what two states have in common when they show the same."""

from __future__ import annotations

import copy
import functools
import json

from fold_frames import event_of
from fold_written import Log
from make import vectors

from pizzabot.host.transcript import entry_of_event, entry_of_frame, fold, from_page, initial, merge_page, page

THREAD = "t"
VECTORS = {vector["name"]: vector for vector in vectors()}
NAMES = sorted(VECTORS)


@functools.cache
def entries_of(name):
    return tuple(entry_of_frame(frame) for frame in VECTORS[name]["events"])


@functools.cache
def events_of(name):
    """The stored events of a vector whose frames are objects."""
    return tuple(event_of(frame) for frame in VECTORS[name]["events"])


@functools.cache
def folded(name, upto=None):
    return fold(initial(), entries_of(name)[:upto])


def fold_events(events, state=None):
    return fold(initial() if state is None else state, map(entry_of_event, events))


def shown(state, namespace=(), **args):
    """All that a state shows, as JSON that came over the wire."""
    return json.loads(json.dumps(page(state, thread_id=THREAD, limit=100, namespace=namespace, **args)))


def sent(state, **args):
    """A page of `state`, as a client gets it."""
    return json.loads(json.dumps(page(state, thread_id=THREAD, **args)))


def load_older(client, server, newer=()):
    """What scrolling up does until there is nothing more."""
    while True:
        window = page(client, thread_id=THREAD, limit=100)
        if not window["hasBefore"]:
            return client
        if not window["turns"]:  # another branch was chosen, which is not loaded
            client = merge_page(client, sent(server, limit=1), newer)
            continue
        older = sent(server, limit=1, before_seq=window["turns"][0]["seq"], head=window["leaf"])
        assert older["turns"], "a page that does not advance"
        client = merge_page(client, older, newer)


def children(state):
    """The namespaces of all subagents."""
    return [item["child"] for turn in state["turns"].values() for item in turn["items"] if "child" in item]


def numbered(frames):
    """The frames in this order, numbered anew."""
    renumbered = copy.deepcopy(list(frames))
    for seq, frame in enumerate(renumbered, start=1):
        frame["seq"] = seq
        frame["event_id"] = f"{frame['event_id'].rpartition(':')[0]}:{seq}"
    return renumbered


@functools.cache
def long_thread(turns=130):
    """A thread of many turns with branches: every tenth turn was edited, and the thread went on from the edit."""
    log, parent = Log(), None
    for number in range(1, turns + 1):
        if number % 10 == 0:
            log.turn(f"old{number}", f"old{number}", parent, f"old answer {number}")
        log.turn(f"r{number}", f"m{number}", parent, f"answer {number}")
        parent = f"m{number}"
    return tuple(entry_of_frame(frame) for frame in log.frames)


__all__ = ["Log", "entries_of", "entry_of_frame", "event_of", "fold", "from_page", "initial", "merge_page", "page"]
