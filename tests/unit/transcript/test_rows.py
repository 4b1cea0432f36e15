"""A transcript kept as rows, of which few are read, shows and goes on as the whole (spec/12 §1.1)."""

import json

import pytest
from fold_logs import (
    NAMES,
    THREAD,
    children,
    entries_of,
    entry_of_frame,
    fold,
    folded,
    initial,
    long_thread,
    page,
    shown,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_left_out_items import parallel_calls

from pizzabot.host.transcript import (
    rows_of,
    state_from_rows,
    summary_of,
    turn_items,
    turns_of_events,
    turns_of_page,
    unsettled_turns,
)
from pizzabot_hookspecs.storage_backends import TranscriptIndex, TurnPlace


class Kept:
    """Rows as a storage keeps them."""

    def __init__(self):
        self.rows = {}
        self.index = TranscriptIndex()
        self.read = 0

    def put(self, state, before=None):
        self.rows |= {row.turn_id: row for row in rows_of(state, before)}
        places = (
            TurnPlace(turn_id=row.turn_id, seq=row.seq, rev=row.rev, parent_id=row.parent_id, settled=row.settled)
            for row in sorted(self.rows.values(), key=lambda row: row.seq)
        )
        self.index = TranscriptIndex(cursor=state["cursor"], summary=summary_of(state), turns=tuple(places))

    def state(self, turn_ids=()):
        needed = {*unsettled_turns(self.index), *turn_ids}
        self.read = len(needed)
        return state_from_rows([self.rows[turn_id] for turn_id in needed], self.index)

    def whole(self):
        return self.state(self.rows)

    def page(self, **args):
        ids = turns_of_page(state_from_rows((), self.index), **args)
        return page(self.state(ids), thread_id=THREAD, **args)

    def go_on(self, entries):
        before = self.state(turns_of_events(state_from_rows((), self.index), entries))
        self.put(fold(before, entries), before)


def kept(state):
    made = Kept()
    made.put(state)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_the_state_and_few_of_them_the_page_at_every_cut(name):
    entries = entries_of(name)
    for cut in range(len(entries) + 1):
        state = folded(name, cut)
        rows = kept(state)
        assert rows.whole() == state, cut
        for args in ({}, {"limit": 1}, {"limit": 1, "around_seq": cut // 2}, {"limit": 2, "before_seq": cut}):
            assert rows.page(**args) == page(state, thread_id=THREAD, **args), (cut, args)
        for head in state["turns"]:
            assert rows.page(limit=1, head=head) == page(state, thread_id=THREAD, limit=1, head=head), cut
            part = rows.state([head])
            for below in ((), *children(state)):
                assert turn_items(part, head, namespace=below) == turn_items(state, head, namespace=below)


@pytest.mark.parametrize("name", NAMES)
def test_the_work_of_a_subagent_needs_the_row_of_its_turn_alone(name):
    state = folded(name)
    rows = kept(state)
    for turn_id, turn in state["turns"].items():
        for below in (item["child"] for item in turn["items"] if "child" in item):
            got = page(rows.state([turn_id]), thread_id=THREAD, namespace=below)
            assert got == page(state, thread_id=THREAD, namespace=below)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_folded_on_are_those_of_the_whole_log_wherever_they_were_stored(name):
    entries = entries_of(name)
    for cut in range(len(entries) + 1):
        rows = kept(folded(name, cut))
        rows.go_on(entries[cut:])
        assert rows.whole() == folded(name), cut


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_rows_that_are_stored_again_and_again_are_those_of_the_whole_log(data):
    name = data.draw(st.sampled_from(NAMES))
    entries, at, rows = entries_of(name), 0, Kept()
    while at < len(entries):
        upto = at + data.draw(st.integers(1, 9))
        rows.go_on(entries[at:upto])
        at = upto
        assert rows.whole() == folded(name, at)
    assert rows.page() == page(folded(name), thread_id=THREAD)


def test_a_page_of_a_long_thread_reads_as_many_rows_as_it_has_turns():
    state = fold(initial(), long_thread())
    rows = kept(state)
    middle = state["turns"]["m64"]["seq"]
    for args in ({}, {"before_seq": middle}, {"around_seq": middle}, {"head": "old60"}):
        assert rows.page(**args) == page(state, thread_id=THREAD, **args)
        assert rows.read == 20
    siblings = rows.page(limit=1)["turns"][0]["siblings"]
    assert siblings == {"index": 1, "count": 2, "ids": ["old130", "m130"]}


def test_only_rows_of_turns_that_changed_are_written():
    entries = long_thread(30)
    rows = kept(fold(initial(), entries[:-4]))
    before = rows.state(turns_of_events(state_from_rows((), rows.index), entries[-4:]))
    after = fold(before, entries[-4:])
    assert [row.turn_id for row in rows_of(after, before)] == ["m30"]
    assert (list(before["turns"]), rows_of(after, after)) == (["m30"], [])


def test_a_message_that_is_written_into_an_old_turn_is_in_its_row():
    entries = long_thread(30)
    message = {"id": "w", "role": "assistant", "content": "late"}
    data = {"name": "pizzabot.message", "payload": {"v": 1, "turn_id": "m3", "message": message}}
    last = entries[-1]
    late = last._replace(seq=last.seq + 1, run_id=None, method="custom", data=data)
    rows = kept(fold(initial(), entries))
    assert unsettled_turns(rows.index) == []
    rows.go_on([late])
    assert rows.whole() == fold(initial(), (*entries, late))


def test_a_turn_that_is_not_loaded_is_not_shown_as_an_empty_one():
    rows = kept(fold(initial(), long_thread(5)))
    with pytest.raises(LookupError, match="m5"):
        page(rows.state(), thread_id=THREAD, limit=1)


def test_a_row_is_json_and_holds_integers_of_any_size():
    frames = parallel_calls(1, 2).frames[:-2]
    payload = {"id": 123456789012345678901, "share": 1.0}
    frames.append({**frames[-1], "seq": len(frames) + 1, "method": "input.requested"})
    frames[-1]["params"] = {**frames[-1]["params"], "data": {"interrupt_id": "i", "payload": payload}}
    state = fold(initial(), map(entry_of_frame, frames))
    (row,) = rows_of(state)
    assert json.loads(row.body)["requests"][0]["payload"] == payload
    assert not row.settled
    assert shown(kept(state).state()) == shown(state)
