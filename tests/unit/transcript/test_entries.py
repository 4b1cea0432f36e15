"""What the fold reads of an event: parsed data, and members as text exactly as they were written (statement 47)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.host.transcript import entry_of_event, entry_of_frame
from pizzabot.host.transcript.entries import raw_member, text_of_member
from pizzabot_hookspecs.storage_backends import StoredEvent

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


def event(data, method="tools", run_id="r"):
    return StoredEvent(seq=1, thread_id="t", run_id=run_id, method=method, data=data, timestamp=2, namespace=("a",))


@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=5), st.sampled_from([None, 1]), st.booleans())
@settings(deadline=None, max_examples=100)
def test_a_member_is_cut_out_of_the_text_as_it_stands(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for key, member in value.items():
        found = raw_member(text, key)
        assert json.loads(found) == member
        assert found in text


@pytest.mark.parametrize(
    ("text", "path", "member"),
    [
        ('{"a":{"b" : 1.50 } ,"c":2}', ("a", "b"), "1.50"),
        ('{"a":1,"a":[ 2 ]}', ("a",), "[ 2 ]"),
        ('{"a":' + "9" * 5_000 + "}", ("a",), "9" * 5_000),
        ("{}", ("a",), None),
        ("[1]", ("a",), None),
        ('{"a":1}', ("a", "b"), None),
    ],
)
def test_numbers_and_doubled_keys_are_left_alone(text, path, member):
    assert raw_member(text, *path) == member


def test_a_string_is_its_own_text_and_what_is_not_there_is_none():
    entry = entry_of_event(event(b'{"input":"{\\"a\\": 1.0}","output":null,"empty":""}'))
    assert [text_of_member(entry, key) for key in ("input", "output", "empty", "none")] == [
        '{"a": 1.0}',
        "null",
        "",
        None,
    ]


def test_an_event_and_its_frame_give_the_same_entry():
    stored = event(b'{"event":"tool-started","tool_call_id":"c","input":{"id":12345678901234567890}}')
    text = (
        '{"type":"event","event_id":"synth:r:1","seq":1,"method":"tools","params":{"namespace":["a"],"timestamp":2,'
        f'"data":{stored.data.decode()}}}}}'
    )
    for frame in (text, text.encode(), json.loads(text)):
        entry = entry_of_frame(frame)
        assert entry[:6] == entry_of_event(stored)[:6]
        assert text_of_member(entry, "input") == '{"id":12345678901234567890}'


def test_facts_of_the_thread_have_no_run_and_state_is_not_read():
    frame = {"event_id": "synth:thread:4", "seq": 4, "method": "custom"}
    assert entry_of_frame({**frame, "params": {"namespace": [], "timestamp": 1, "data": {}}}).run_id is None
    assert entry_of_event(event(b"not even JSON", method="values")).data == {}
    assert entry_of_event(event(b"[1]")).data == {}


def test_a_question_keeps_integers_of_any_size():
    stored = event(b'{"interrupt_id":"i","payload":{"id":123456789012345678901}}', method="input.requested")
    assert entry_of_event(stored).data["payload"] == {"id": 123456789012345678901}
