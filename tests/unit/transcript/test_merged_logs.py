"""A log whose deltas were merged folds to the same transcript, wherever a reader's cursor was (statement 10)."""

from dataclasses import replace

import pytest
from fold_logs import NAMES, VECTORS, Log, event_of, events_of, fold_events, from_page, load_older, sent, shown
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.host.runs import merging
from pizzabot.host.runs.merging import merge_deltas

RECORDED = [name for name in NAMES if not isinstance(VECTORS[name]["events"][0], str)]


def merged(events):
    """The log after a round of retention: what is gone is gone, what takes its place has the last seq."""
    by_last = {one.last_seq: one for one in merge_deltas(events)}
    gone = {seq for one in by_last.values() for seq in range(one.first_seq, one.last_seq)}
    kept = (event for event in events if event.seq not in gone)
    return [replace(event, data=by_last[event.seq].data) if event.seq in by_last else event for event in kept]


def in_parts(events, sizes):
    """The same, read page by page: stretches end where a page does."""
    log, at = [], 0
    for size in sizes:
        log += merged(events[at : at + size])
        at += size
    return log + merged(events[at:])


@pytest.mark.parametrize("name", RECORDED)
def test_a_merged_log_folds_to_the_same_state_from_every_cursor(name):
    events = list(events_of(name))
    log, whole = merged(events), fold_events(events)
    assert shown(fold_events(log)) == shown(whole)
    for cut in range(len(events) + 1):
        state = fold_events(events[:cut])
        rest = [event for event in log if event.seq > state["cursor"]]
        assert shown(fold_events(rest, state)) == shown(whole), cut
        client = fold_events(rest, from_page(sent(state, limit=100)))
        assert shown(load_older(client, whole)) == shown(whole), cut


def _texts(state):
    return [
        (turn["status"], [(item["id"], item["seq"], item["rev"], item.get("text")) for item in turn["items"]])
        for turn in state["turns"].values()
    ]


@pytest.mark.parametrize("limit", [3, 8, 64_000])
@pytest.mark.parametrize("name", ["text", "reasoning", "stop in the middle of a text", "merged deltas"])
def test_at_every_step_of_a_merged_log_the_text_is_what_it_was(name, limit, monkeypatch):
    monkeypatch.setattr(merging, "MAX_MERGED_CHARACTERS", limit)
    events = list(events_of(name))
    log = merged(events)
    for cut in range(len(events) + 1):
        state = fold_events(events[:cut])
        for event in log:
            state = fold_events([event], state)
            upto = max(event.seq, events[cut - 1].seq if cut else 0)
            assert _texts(state) == _texts(fold_events([one for one in events if one.seq <= upto])), (cut, event.seq)


def test_a_text_that_was_interrupted_by_others_keeps_what_was_before():
    log = Log().begin("r", "m1").open("r", "a").open("r", "b")
    for piece in ("one ", "two ", "three "):
        log.delta("r", "a", piece)
    log.delta("r", "b", "between")
    for piece in ("one ", "one ", "one "):
        log.delta("r", "a", piece)
    events = [event_of(frame) for frame in log.frames]
    for cut in range(len(events) + 1):
        state = fold_events(merged(events), fold_events(events[:cut]))
        assert [item["text"] for item in state["turns"]["m1"]["items"]] == ["one two three one one one ", "between"], (
            cut
        )


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_stretches_may_end_anywhere_and_be_merged_again(data):
    name = data.draw(st.sampled_from(RECORDED))
    limit = data.draw(st.sampled_from([3, 8, 64_000]))
    events = list(events_of(name))
    sizes = data.draw(st.lists(st.integers(1, 12), max_size=8))
    before, merging.MAX_MERGED_CHARACTERS = merging.MAX_MERGED_CHARACTERS, limit
    try:
        first = in_parts(events, sizes)
    finally:
        merging.MAX_MERGED_CHARACTERS = before
    second = merged(first)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), min_size=2, max_size=2)))
    state = fold_events(events[: cuts[0]])
    assert shown(fold_events(first, state)) == shown(fold_events(events))
    state = fold_events([event for event in first if event.seq <= cuts[1]], state)
    if data.draw(st.booleans()):
        state = from_page(sent(state, limit=100))
    whole = fold_events(events)
    assert shown(load_older(fold_events(second, state), whole)) == shown(whole)


def test_text_that_repeats_itself_is_shown_once():
    events = list(events_of("stop in the middle of a text"))
    deltas = [event for event in events if b"text-delta" in event.data]
    same = [replace(event, data=event.data.replace(b"two", b"one").replace(b"three", b"one")) for event in deltas]
    log = [next((new for new in same if new.seq == event.seq), event) for event in events]
    for cut in range(len(log) + 1):
        state = fold_events(merged(log), fold_events(log[:cut]))
        (item,) = state["turns"]["m1"]["items"]
        assert item["text"] == "one one one "
