"""The fold: a thread's log to its transcript. Pure: same state and same event, same next state; nothing is read.

    state = fold(initial(), (entry_of_event(event) for event in events))

What a state has seen changes nothing when it comes again (spec/12 §0): an event up to `cursor` is dropped, and what a
page brought is left alone by events that are older than it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pizzabot.host.transcript.draft import Draft
from pizzabot.host.transcript.entries import READ, Entry
from pizzabot.host.transcript.facts import see_fact
from pizzabot.host.transcript.messages import Messages
from pizzabot.host.transcript.requests import see_answered, see_requested
from pizzabot.host.transcript.runs import see_lifecycle
from pizzabot.host.transcript.shapes import State
from pizzabot.host.transcript.tools import see_child, see_tool


def apply(state: State, entry: Entry) -> State:
    """The state after one event. For more than one, `fold` copies less."""
    return fold(state, (entry,))


def fold(state: State, entries: Iterable[Entry]) -> State:
    """The state after `entries`, which are in the order of the log. `state` itself stays as it is."""
    draft = Draft(state)
    messages = Messages(draft)
    record = draft.state
    for entry in entries:
        if entry.seq <= record["cursor"]:
            continue
        record["cursor"] = entry.seq
        method = entry.method
        if method == "messages":
            messages.see(entry)
        elif method in READ:
            _rarer(draft, entry)
    return draft.finish()


def _rarer(draft: Draft, entry: Entry) -> None:
    if entry.method == "tools":
        see_tool(draft, entry)
    elif entry.method == "lifecycle":
        see_child(draft, entry) if entry.namespace else see_lifecycle(draft, entry)
    elif entry.method == "custom":
        see_fact(draft, entry)
    elif entry.method == "input.requested":
        see_requested(draft, entry)
    elif entry.method == "input.answered":
        see_answered(draft, entry)
