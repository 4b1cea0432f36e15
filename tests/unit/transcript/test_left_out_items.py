"""What a page has left out of a long turn changes nothing for what comes next, and can be loaded at any time (17)."""

import json

import pytest
from fold_logs import (
    NAMES,
    Log,
    children,
    entries_of,
    entry_of_frame,
    fold,
    folded,
    from_page,
    initial,
    load_older,
    merge_page,
    sent,
    shown,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pizzabot.host.transcript import merge_items, pages, turn_items

TOLD_ONCE = [name for name in NAMES if name != "facts of the thread"]
"""Without a message that is written again: the host tells of each once, so no page says which it has left out."""
FEW = st.sampled_from([(1, 1), (2, 1), (3, 2), (5, 3)])


@pytest.fixture
def few_items(monkeypatch):
    """A page of turns with so few items that each of the recorded runs is a long one."""

    def show(whole, otherwise):
        monkeypatch.setattr(pages, "ITEMS_SHOWN_WHOLE", whole)
        monkeypatch.setattr(pages, "ITEMS_SHOWN", otherwise)

    return show


def older_items(client, server, turn_id, namespace=(), newer=(), limit=2):
    """What opening the rest of a turn does, once."""
    elided = client["turns"][turn_id].get("elided", {}).get("|".join(namespace))
    if elided is None:
        return client
    found = turn_items(server, turn_id, before_seq=elided["beforeSeq"], limit=limit, namespace=namespace)
    assert found["items"], "items that do not advance"
    return merge_items(client, json.loads(json.dumps(found)), newer)


def whole_turns(client, server, namespace=()):
    for turn_id in client["turns"]:
        while "|".join(namespace) in client["turns"][turn_id].get("elided", {}):
            client = older_items(client, server, turn_id, namespace)
    return client


def assert_same_items(client, server, namespace=()):
    """In the turns that the client has, every item of a graph, as the server has it."""
    client = whole_turns(client, server, namespace)
    for turn_id, turn in client["turns"].items():
        mine, theirs = (
            [item for item in one["items"] if item["namespace"] == list(namespace)]
            for one in (turn, server["turns"][turn_id])
        )
        assert mine == theirs, turn_id


@pytest.mark.parametrize("name", TOLD_ONCE)
def test_a_page_with_few_of_the_items_goes_on_as_the_whole_at_every_cut(name, few_items):
    few_items(2, 1)
    entries, server = entries_of(name), folded(name)
    for cut in range(len(entries) + 1):
        client = fold(from_page(sent(folded(name, cut), limit=100)), entries[cut:])
        client = load_older(client, server)
        assert shown(client) == shown(server), cut
        assert_same_items(client, server)


@given(st.data())
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_older_items_that_arrive_behind_newer_events_end_correct(few_items, data):
    few_items(*data.draw(FEW))
    name = data.draw(st.sampled_from(TOLD_ONCE))
    entries, server = entries_of(name), folded(name)
    began, cursor = sorted(data.draw(st.integers(0, len(entries))) for _ in range(2))
    client, namespace = from_page(sent(folded(name, began), limit=100)), []
    if children(folded(name, began)) and data.draw(st.booleans()):
        namespace = data.draw(st.sampled_from(children(folded(name, began))))
        client = merge_page(client, sent(folded(name, began), namespace=namespace))
    client = fold(client, entries[began:cursor])
    for turn_id in list(client["turns"]):
        asked = data.draw(st.integers(began, len(entries)))
        if turn_id in folded(name, asked)["turns"]:
            more = data.draw(st.integers(1, 3))
            newer = entries[asked:cursor]
            client = older_items(client, folded(name, asked), turn_id, namespace, newer, more)
    client = load_older(fold(client, entries[cursor:]), server)
    assert shown(client) == shown(server)
    assert_same_items(client, server)
    if namespace and namespace in client["scope"]:
        assert_same_items(client, server, namespace)


def parallel_calls(messages=3, calls=90):
    """A model that numbers its calls anew in each message, calls many at once, and says last what began first."""
    log = Log().begin("r", "m1").open("r", "late")
    for message in map(str, range(messages)):
        log.message("r", message, "message-start", role="ai", id=f"lc-{message}")
        for number in range(calls):
            whole = {"type": "tool_call", "id": f"call_{number}", "name": "look", "args": {}}
            log.message("r", message, "content-block-finish", index=number, content=whole)
        log.message("r", message, "message-finish")
        for number in range(calls):
            log.tool("r", f"call_{number}", "tool-started", (f"tools:{number}",), tool_name="look", input={})
        for number in reversed(range(calls)):
            log.tool("r", f"call_{number}", "tool-finished", (f"tools:{number}",), output=message)
    log.delta("r", "late", "said ").delta("r", "late", "at last").close("r", "late", "said at last")
    return log.end("r", "m1")


def test_many_calls_at_once_with_ids_that_come_again_are_all_there_behind_any_page():
    entries = [entry_of_frame(frame) for frame in parallel_calls().frames]
    server = fold(initial(), entries)
    for cut in range(0, len(entries) + 1, 29):
        client = fold(from_page(sent(fold(initial(), entries[:cut]))), entries[cut:])
        assert shown(client) == shown(server), cut
        assert_same_items(client, server)


def test_a_question_that_a_page_left_out_is_answered_without_it():
    log = Log().begin("r", "m1").add("r", "input.requested", {"interrupt_id": "i", "payload": "?"})
    for number in range(300):
        log.tool("r", f"c{number}", "tool-finished", tool_name="look", output="x")
    cut = len(log.frames)
    log.fact(None, "request", interrupt_id="i", state="decided", answer="yes").end("r", "m1")
    entries = [entry_of_frame(frame) for frame in log.frames]
    server, before = fold(initial(), entries), fold(initial(), entries[:cut])
    client = fold(from_page(sent(before)), entries[cut:])
    assert shown(client) == shown(server)
    found = turn_items(before, "m1", limit=200, before_seq=client["turns"]["m1"]["elided"][""]["beforeSeq"])
    client = merge_items(merge_items(client, found, entries[cut:]), turn_items(before, "m1", limit=200, before_seq=5))
    assert client["turns"]["m1"]["items"][0]["answer"] == "yes"
