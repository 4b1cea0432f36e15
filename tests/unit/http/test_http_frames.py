"""Frames are composed from stored bytes, and nothing in them can break a line (wire.md §3)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pizzabot_builtin_plugins.http_server.frames import CHUNK_BYTES, HEARTBEAT, chunks, event_frame, gap_frame
from pizzabot_hookspecs.host import EventBatch
from pizzabot_hookspecs.storage_backends import StoredEvent


def event(data, **changes):
    facts = {"seq": 1, "thread_id": "t", "run_id": "r", "method": "values", "timestamp": 5, **changes}
    return StoredEvent(data=data, **facts)


def payload_of(chunk):
    return [json.loads(line[6:]) for line in chunk.decode().split("\n") if line.startswith("data: ")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(json_values, st.booleans())
def test_any_stored_json_comes_out_equal_on_one_line_for_every_reader(value, indented):
    data = json.dumps(value, ensure_ascii=False, indent=2 if indented else None).encode()
    (chunk,) = chunks(EventBatch(events=[event(data)]), now_ms=0)
    assert len(chunk.decode().splitlines()) == 4
    (frame,) = payload_of(chunk)
    assert frame["params"]["data"] == value


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_names_in_the_envelope_are_escaped(segment, run_id):
    (frame,) = payload_of(event_frame(event(b"{}", namespace=(segment,), run_id=run_id, node=segment)))
    assert frame["params"]["namespace"] == [segment]
    assert frame["params"]["node"] == segment
    assert frame["event_id"] == f"synth:{run_id or 'thread'}:1"


def test_the_stored_bytes_are_not_parsed():
    assert b'"data":this is not json}}' in event_frame(event(b"this is not json"))


def test_an_event_without_a_run_or_a_node_says_so():
    (frame,) = payload_of(event_frame(event(b"{}", run_id=None)))
    assert frame["event_id"] == "synth:thread:1"
    assert "node" not in frame["params"]


def test_a_batch_is_cut_into_chunks_of_bounded_size():
    events = [event(b'"%s"' % (b"x" * 100_000), seq=number) for number in range(1, 11)]
    pieces = list(chunks(EventBatch(events=events), now_ms=0))
    assert len(pieces) > 1
    assert all(len(piece) < CHUNK_BYTES + 101_000 for piece in pieces)
    assert [frame["seq"] for piece in pieces for frame in payload_of(piece)] == list(range(1, 11))


def test_an_empty_batch_is_a_heartbeat_and_a_gap_is_not():
    assert list(chunks(EventBatch(), now_ms=0)) == [HEARTBEAT]
    gap = {"requested": 1, "earliest": 4, "latest": 9}
    assert list(chunks(EventBatch(gap=gap), now_ms=7)) == [gap_frame(gap, now_ms=7)]


def test_a_gap_has_a_seq_before_everything_that_follows_it():
    (frame,) = payload_of(gap_frame({"requested": 1, "earliest": 4, "latest": 9}, now_ms=7))
    assert (frame["seq"], frame["event_id"], frame["params"]["timestamp"]) == (3, "synth:gap:1-4", 7)
