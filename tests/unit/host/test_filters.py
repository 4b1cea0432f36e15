"""What a connection wants of the log: channels, namespaces, depth, and the two views (wire.md §0, §3)."""

import pytest

from pizzabot.host.runs.filters import matches, select
from pizzabot_hookspecs.host import ClientView, EventFilter
from pizzabot_hookspecs.storage_backends import StoredEvent


def event(method="messages", namespace=(), name=None, seq=1):
    return StoredEvent(
        seq=seq, thread_id="t", run_id="r", method=method, data=b"{}", timestamp=1, namespace=namespace, name=name
    )


def wanted(*channels, **more):
    return EventFilter(channels=frozenset(channels), **more)


def test_input_requested_and_answered_belong_to_the_channel_input():
    assert matches(event("input.requested"), wanted("input"))
    assert matches(event("input.answered"), wanted("input"))
    assert not matches(event("input.requested"), wanted("lifecycle"))


def test_custom_matches_every_name_and_a_named_custom_only_its_own():
    assert matches(event("custom", name="a"), wanted("custom"))
    assert matches(event("custom", name="a"), wanted("custom:a"))
    assert not matches(event("custom", name="b"), wanted("custom:a"))
    assert not matches(event("custom"), wanted("custom:a"))


def test_no_channels_give_nothing_and_an_unknown_method_matches_nothing():
    assert not matches(event(), wanted())
    assert not matches(event("debug"), wanted("debug", "custom"))


@pytest.mark.parametrize(
    ("namespace", "prefixes", "depth", "seen"),
    [
        (("tools:1",), (), None, True),
        ((), ((),), 0, True),
        (("model_request:1",), ((),), 0, False),
        (("model_request:1",), ((),), 1, True),
        (("tools:1", "model_request:2"), ((),), 1, False),
        (("tools:1", "model_request:2"), (("tools:1",),), None, True),
        (("tools:1", "model_request:2"), (("tools",),), None, True),
        (("tools:1",), (("tools:2",),), None, False),
        (("tools:1",), (("tool",),), None, False),
        ((), (("tools:1",),), None, False),
        (("tools:2",), (("tools:1",), ("tools:2",)), 0, True),
    ],
)
def test_a_namespace_matches_by_prefix_and_depth(namespace, prefixes, depth, seen):
    assert matches(event(namespace=namespace), wanted("messages", namespaces=prefixes, depth=depth)) is seen


def test_the_python_view_drops_the_nodes_own_segment_before_filtering():
    events = [
        event(namespace=("model_request:1",), seq=1),
        event("tools", namespace=("tools:9", "tools:8"), seq=2),
        event("lifecycle", namespace=("tools:9",), seq=3),
    ]
    root = wanted("messages", "tools", "lifecycle", namespaces=((),), depth=0, view=ClientView.PYTHON)
    assert [(found.seq, found.namespace) for found in select(events, root)] == [(1, ())]
    everything = wanted("messages", "tools", "lifecycle", view=ClientView.PYTHON)
    assert [found.namespace for found in select(events, everything)] == [(), ("tools:9",), ("tools:9",)]
