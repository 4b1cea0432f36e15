"""Nothing hides or disturbs its neighbours: unknown facts, other runs between, names of every object (12, 13, 46)."""

import copy
import json

import pytest
from fold_logs import NAMES, VECTORS, Log, entry_of_frame, fold, initial, numbered, shown
from hypothesis import given, settings
from hypothesis import strategies as st

RECORDED = [name for name in NAMES if not isinstance(VECTORS[name]["events"][0], str)]
OF_RUNS = [name for name in RECORDED if name not in ("a log older than the facts", "facts of the thread")]
"""Without facts of the thread that name no turn: those go to whatever turn is its head."""
NOTHING = {"method": "values", "params": {"namespace": [], "timestamp": 1, "data": {}}}
UNKNOWN = [
    ("custom", {"name": "pizzabot.weather", "payload": {"v": 1, "turn_id": "m1", "run_id": "run_id1"}}),
    ("custom", {"name": "pizzabot.turn", "payload": {"v": 2, "turn_id": "other", "parent_id": None}}),
    ("custom", {"name": "pizzabot.run", "payload": {"v": "1", "run_id": "run_id1", "status": "error"}}),
    ("custom", {"name": "pizzabot.head", "payload": [1]}),
    ("custom", {"name": "pizzabot.request", "payload": {"v": True, "interrupt_id": "i", "state": "open"}}),
    ("custom", {"payload": {"name": "pizzabot.head"}}),
    ("custom", {"name": "__proto__", "payload": {"v": 1}}),
    ("custom", 7),
    ("tools", {"event": "tool-started"}),
    ("tools", []),
    ("messages", {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "x"}}),
    ("messages", {"event": "content-block-start", "index": 0}),
    ("messages", None),
    ("input.requested", {"interrupt_id": 3}),
    ("input.answered", {"interrupt_ids": "i"}),
    ("constructor", {"event": "running"}),
]


def folded(frames):
    return fold(initial(), map(entry_of_frame, frames))


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_what_is_not_known_hides_no_neighbour(data):
    frames = VECTORS[data.draw(st.sampled_from(RECORDED))]["events"]
    with_unknown, with_nothing = [], []
    for frame in frames:
        with_unknown.append(frame)
        with_nothing.append(frame)
        if frame is not frames[0] and data.draw(st.integers(0, 3)) == 0:
            method, told = data.draw(st.sampled_from(UNKNOWN))
            unknown = {"method": method, "params": {"namespace": [], "timestamp": 1, "data": told}}
            with_unknown.append({**frame, **unknown})
            with_nothing.append({**frame, **NOTHING})
    assert folded(numbered(with_unknown)) == folded(numbered(with_nothing))


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_events_of_another_run_between_never_mix(data):
    first, second = (data.draw(st.sampled_from(OF_RUNS)) for _ in range(2))
    mine, theirs = list(VECTORS[first]["events"]), _of_others(VECTORS[second]["events"])
    order = data.draw(st.permutations([0] * len(mine) + [1] * len(theirs)))
    sources = (iter(mine), iter(theirs))
    both = folded(numbered(next(sources[which]) for which in order))
    for own in (folded(mine), folded(_of_others(VECTORS[second]["events"]))):
        for turn_id, turn in own["turns"].items():
            assert _told(both["turns"][turn_id]) == _told(turn)


def _of_others(frames):
    """The same with other ids for runs, turns and questions; calls and messages keep theirs."""
    text = json.dumps(frames)
    for own in ("synth:", 'run_id": "', 'turn_id": "', 'parent_id": "', 'interrupt_id": "', 'interrupt_ids": ["'):
        text = text.replace(own, own + "other-")
    return json.loads(text.replace("synth:other-thread", "synth:thread"))


def _told(turn):
    """What a turn says, without places; the id of a call has its place behind an @."""
    places = ("seq", "rev", "startedAt", "endedAt")
    items = [{key: value for key, value in item.items() if key not in places} for item in turn["items"]]
    items = [{**item, "id": item["id"].partition("@")[0]} for item in items]
    return turn["status"], [item if item["kind"] != "notice" else item["code"] for item in items]


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString"])
def test_names_of_every_object_are_data_like_any_other(name):
    log = Log().begin(name, name).say(name, name, "a", "b")
    log.fact(name, name).fact(name, "run", run_id=name, turn_id=name, status=name)
    state = folded(log.frames)
    assert state["turns"][name]["status"] == "running"
    assert shown(state)["turns"][0]["items"][0]["text"] == "ab"


def test_a_forged_fact_below_the_root_is_none():
    log = Log().begin("r", "m1")
    before = shown(folded(log.frames))["turns"]
    log.add("r", "custom", {"name": "pizzabot.head", "payload": {"v": 1, "turn_id": "x"}}, ("tools:1",))
    state = folded(log.frames)
    assert (state["head"], shown(state)["turns"]) == ("m1", before)


def test_a_parent_that_is_not_older_ends_the_path():
    log = Log().begin("r1", "a", "b").begin("r2", "b", "a").begin("r3", "c", "c")
    state = folded(log.frames)
    assert [turn["id"] for turn in shown(state)["turns"]] == ["c"]
    assert [turn["id"] for turn in shown(state, head="b")["turns"]] == ["a", "b"]


def test_frames_are_not_changed_by_the_fold():
    frames = VECTORS["approval in a subagent"]["events"]
    kept = copy.deepcopy(frames)
    folded(frames)
    assert frames == kept
