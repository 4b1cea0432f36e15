"""Merged deltas: neighbours of one block only, the last seq kept, the first named, every character kept (rule 5)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pizzabot.host.runs.merging import MAX_MERGED_CHARACTERS, merge_deltas
from pizzabot_hookspecs.storage_backends import StoredEvent


def event(seq, data, namespace=("model_request:1",), method="messages"):
    return StoredEvent(
        seq=seq, thread_id="t", run_id="r", method=method, data=json.dumps(data).encode(), timestamp=seq,
        namespace=namespace, node="model",
    )  # fmt: skip


def delta(text, index=0, kind="text-delta", run_id="m"):
    key = "reasoning" if kind == "reasoning-delta" else "text"
    return {"event": "content-block-delta", "index": index, "delta": {"type": kind, key: text}, "run_id": run_id}


def test_neighbouring_deltas_become_one_with_the_last_seq_and_the_first_named():
    start = {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}, "run_id": "m"}
    (merged,) = merge_deltas([event(1, start), event(2, delta("a")), event(3, delta("b")), event(4, delta("🍕"))])
    assert (merged.first_seq, merged.last_seq) == (2, 4)
    assert json.loads(merged.data) == delta("ab🍕") | {"from_seq": 2}


def test_other_blocks_kinds_messages_and_events_between_end_a_stretch():
    events = [
        event(1, delta("a")), event(2, delta("b", index=1)), event(3, delta("c", kind="reasoning-delta")),
        event(4, delta("d", run_id="n")), event(5, delta("e", run_id="n"), namespace=("tools:1",)),
        event(6, {"event": "running"}, method="lifecycle"), event(8, delta("f")), event(10, delta("g")),
        event(11, {"event": "content-block-delta", "index": 0, "delta": {"type": "data-delta"}, "run_id": "m"}),
    ]  # fmt: skip
    assert merge_deltas(events) == []


def test_what_was_merged_before_keeps_its_first_seq():
    merged_before = event(5, delta("ab") | {"from_seq": 2})
    (merged,) = merge_deltas([merged_before, event(6, delta("c"))])
    assert json.loads(merged.data)["from_seq"] == 2


def test_a_merged_delta_has_a_limit():
    half = "x" * (MAX_MERGED_CHARACTERS // 2)
    merged = merge_deltas([event(seq, delta(half)) for seq in range(1, 6)])
    assert [(one.first_seq, one.last_seq) for one in merged] == [(1, 2), (3, 4)]


@given(st.lists(st.tuples(st.sampled_from(["a", "🍕", "", "é "]), st.integers(0, 1)), max_size=40))
def test_every_character_of_every_block_survives_in_order(pieces):
    events = [event(seq, delta(text, index=index)) for seq, (text, index) in enumerate(pieces, start=1)]
    merged = {one.last_seq: one for one in merge_deltas(events)}
    gone = {seq for one in merged.values() for seq in range(one.first_seq, one.last_seq)}
    after = [merged[e.seq].data if e.seq in merged else e.data for e in events if e.seq not in gone]
    for index in (0, 1):
        texts = [json.loads(data) for data in after]
        told = "".join(data["delta"]["text"] for data in texts if data["index"] == index)
        assert told == "".join(text for text, of in pieces if of == index)
