"""A page and the fold of what comes after it show what the fold from 0 shows (spec/12 statements 1, 3, 4, 15, 16)."""

import copy
import json

import pytest
from fold_logs import (
    NAMES,
    THREAD,
    children,
    entries_of,
    fold,
    folded,
    from_page,
    initial,
    load_older,
    long_thread,
    merge_page,
    page,
    sent,
    shown,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.host.transcript import apply
from pizzabot_hookspecs import NotFound

ROOT = [[]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [1, 20])
def test_the_fold_from_0_is_the_newest_page_and_the_fold_of_the_rest_at_every_cut(name, limit):
    entries, whole = entries_of(name), shown(folded(name))
    for cut in range(len(entries) + 1):
        server = folded(name, cut)
        client = fold(from_page(sent(server, limit=limit)), entries[cut:])
        client = load_older(client, folded(name))
        assert shown(client) == whole, cut


@pytest.mark.parametrize("name", NAMES)
def test_the_fold_without_what_subagents_say_shows_the_same_thread(name):
    entries = entries_of(name)
    for cut in range(len(entries) + 1):
        assert shown(fold(initial(ROOT), entries[:cut])) == shown(folded(name, cut))


@pytest.mark.parametrize("name", [name for name in NAMES if children(folded(name))])
def test_the_work_of_a_subagent_that_is_expanded_at_any_moment_is_whole(name):
    entries = entries_of(name)
    for cut in range(len(entries) + 1):
        server = folded(name, cut)
        for below in children(server):
            client = merge_page(fold(initial(ROOT), entries[:cut]), sent(server, namespace=below))
            client = fold(client, entries[cut:])
            assert shown(client) == shown(folded(name))
            assert shown(client, below)["turns"] == shown(folded(name), below)["turns"]


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_a_page_that_arrives_behind_newer_events_or_before_older_ones_ends_correct(data):
    name = data.draw(st.sampled_from(NAMES))
    entries = entries_of(name)
    place = st.integers(0, len(entries))
    began = data.draw(place)
    client, cursor, below = from_page(sent(folded(name, began), **_window(data, folded(name, began)))), began, []
    for _ in range(data.draw(st.integers(1, 3))):
        asked, upto = max(began, data.draw(place)), max(cursor, data.draw(place))
        client, cursor = fold(client, entries[cursor:upto]), upto
        args = _window(data, folded(name, asked))
        if children(folded(name, asked)) and data.draw(st.booleans()):
            args = {"namespace": data.draw(st.sampled_from(children(folded(name, asked))))}
            below.append(args["namespace"])
        client = merge_page(client, sent(folded(name, asked), **args), entries[asked:cursor])
    client = load_older(fold(client, entries[cursor:]), folded(name))
    assert shown(client) == shown(folded(name))
    assert client["ahead"] == {}
    for namespace in below:
        if _loaded(client, namespace):
            assert shown(client, namespace)["turns"] == shown(folded(name), namespace)["turns"]


def _window(data, state):
    """A page that somebody may have asked for: the newest, one in the middle, one of another branch."""
    args = {"limit": data.draw(st.integers(1, 3))}
    if data.draw(st.booleans()):
        args["around_seq"] = data.draw(st.integers(0, state["cursor"]))
    if state["turns"] and data.draw(st.booleans()):
        args["head"] = data.draw(st.sampled_from(sorted(state["turns"])))
    return args


def test_a_subagents_page_needs_none_of_the_items_above_to_read_what_comes_next():
    entries = entries_of("calls with equal ids")
    for asked in range(len(entries) + 1):
        for below in children(folded("calls with equal ids", asked)):
            for cursor in range(asked, len(entries) + 1):
                client = fold(from_page(sent(initial())), entries[:cursor])
                page_of = sent(folded("calls with equal ids", asked), namespace=below)
                client = fold(merge_page(client, page_of, entries[asked:cursor]), entries[cursor:])
                assert shown(client, below)["turns"] == shown(folded("calls with equal ids"), below)["turns"]


def _loaded(client, below):
    return below in client["scope"] and any(
        item["namespace"] == below for turn in client["turns"].values() for item in turn["items"]
    )


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_any_event_or_range_that_comes_again_changes_nothing(data):
    name = data.draw(st.sampled_from(NAMES))
    entries = entries_of(name)
    state, at = initial(), 0
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, at))
        end = data.draw(st.integers(start, len(entries)))
        state, at = fold(state, entries[start:end]), max(at, end)
        assert state == folded(name, at)


@pytest.mark.parametrize("name", NAMES)
def test_one_event_after_the_other_is_the_same_as_all_at_once_and_no_state_is_changed(name):
    state = initial()
    for entry in entries_of(name):
        before, kept = state, copy.deepcopy(state)
        state = apply(state, entry)
        assert before == kept
    assert state == folded(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_is_json(name):
    assert json.loads(json.dumps(folded(name))) == folded(name)


def test_a_page_of_a_state_is_not_changed_by_what_is_folded_into_it_later():
    entries = long_thread(12)
    made = page(fold(initial(), entries[:100]), thread_id=THREAD)
    kept = copy.deepcopy(made)
    fold(from_page(made), entries[100:])
    assert made == kept


@pytest.mark.parametrize("limit", [1, 7, 20, 100])
def test_loading_all_older_pages_shows_each_turn_once_ascending(limit):
    state = fold(initial(), long_thread())
    turns, before = [], None
    while True:
        got = sent(state, limit=limit, before_seq=before)
        turns = [*got["turns"], *turns]
        assert len(got["turns"]) <= limit
        assert got["hasAfter"] is (before is not None)
        if not got["hasBefore"]:
            break
        before = got["turns"][0]["seq"]
    assert [turn["id"] for turn in turns] == [f"m{number}" for number in range(1, 131)]
    assert [turn["seq"] for turn in turns] == sorted(turn["seq"] for turn in turns)


def test_a_page_around_a_hit_is_one_window_from_which_scrolling_reaches_both_ends():
    state = fold(initial(), long_thread())
    hit = next(item for item in state["turns"]["m64"]["items"])
    got = sent(state, limit=10, around_seq=hit["seq"])
    ids = [turn["id"] for turn in got["turns"]]
    assert ids == [f"m{number}" for number in range(60, 70)]
    assert (got["hasBefore"], got["hasAfter"]) == (True, True)
    for seq, has in ((1, (False, True)), (10**9, (True, False))):
        end = sent(state, limit=10, around_seq=seq)
        assert (len(end["turns"]), end["hasBefore"], end["hasAfter"]) == (10, *has)


def test_siblings_are_counted_in_their_order_and_another_branch_can_be_read():
    state = fold(initial(), long_thread(20))
    newest = {turn["id"]: turn for turn in sent(state, limit=100)["turns"]}
    assert newest["m20"]["siblings"] == {"index": 1, "count": 2, "ids": ["old20", "m20"]}
    assert newest["m19"]["siblings"] == {"index": 0, "count": 1, "ids": ["m19"]}
    other = sent(state, head="old10")
    assert [turn["id"] for turn in other["turns"]] == [*(f"m{number}" for number in range(1, 10)), "old10"]
    assert (other["head"], other["leaf"], other["hasAfter"]) == ("m20", "old10", False)
    with pytest.raises(NotFound, match="has no turn"):
        page(state, thread_id=THREAD, head="nobody")


def test_an_empty_thread_has_an_empty_page():
    got = sent(initial())
    assert (got["turns"], got["hasBefore"], got["hasAfter"], got["asOfSeq"]) == ([], False, False, 0)
