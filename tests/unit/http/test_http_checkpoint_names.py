"""How clients name a checkpoint: namespaces joined in two ways, and the fields of a state that they want."""

import pytest

from pizzabot_builtin_plugins.http_server.checkpoint_names import (
    CheckpointName,
    read_before,
    read_checkpoint,
    read_selection,
    selected,
)
from pizzabot_hookspecs import InvalidRequest

STATE = {"values": {"messages": [1], "files": {}}, "next": [], "tasks": [], "metadata": {"step": 1}}


@pytest.mark.parametrize(
    ("joined", "namespace"),
    [
        (None, ()),
        ("", ()),
        ("tools:1", ("tools:1",)),
        ("tools:1|tools:2", ("tools:1", "tools:2")),
        ("tools:1\0tools:2", ("tools:1", "tools:2")),
        ("tools:1\0tools:2|tools:3", ("tools:1", "tools:2", "tools:3")),
    ],
)
def test_a_namespace_is_split_at_either_separator(joined, namespace):
    assert read_checkpoint({"checkpoint": {"checkpoint_ns": joined}}, "t") == CheckpointName(namespace=namespace)


@pytest.mark.parametrize("joined", ["|", "\0", "a|", "\0a", "a||b", "a" * 257, "|".join("a" * 33)])
def test_a_namespace_with_an_empty_segment_or_too_much_of_it_is_refused(joined):
    with pytest.raises(InvalidRequest) as refused:
        read_checkpoint({"checkpoint": {"checkpoint_ns": joined}}, "t")
    assert set(refused.value.fields) == {"checkpoint.checkpoint_ns"}


def test_no_checkpoint_is_the_newest_one_of_the_thread():
    for body in ({}, {"checkpoint": None}, {"checkpoint": {}}, {"checkpoint": {"checkpoint_id": None, "more": 1}}):
        assert read_checkpoint(body, "t") == CheckpointName()


@pytest.mark.parametrize("value", [None, ""])
def test_no_before_is_the_newest(value):
    assert read_before(value) is None


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        (None, STATE),
        ((), STATE),
        (("next",), {"next": []}),
        (("values.files", "next"), {"next": [], "values": {"files": {}}}),
        (("values.nothing",), {"values": {}}),
        (("values", "values.files"), {"values": STATE["values"]}),
        (("created_at",), {}),
    ],
)
def test_select_leaves_those_fields(fields, left):
    assert selected(STATE, read_selection(fields)) == left
