"""Pages that are ahead of a state or behind it, in the cases that matter one by one (spec/12 statement 4)."""

from fold_logs import (
    Log,
    children,
    entries_of,
    entry_of_frame,
    fold,
    folded,
    from_page,
    initial,
    merge_page,
    sent,
    shown,
)

from pizzabot.host.transcript import merge_items, turn_items

ROOT = [[]]


def entries(log):
    return [entry_of_frame(frame) for frame in log.frames]


def turns(*ids):
    log, parent = Log(), None
    for turn_id in ids:
        log.turn(f"r-{turn_id}", turn_id, parent, f"answer {turn_id}")
        parent = turn_id
    return log


def test_items_that_a_page_ahead_has_left_out_do_not_come_back_with_the_events_it_has_seen():
    log = Log().begin("r", "m1")
    for number in range(300):
        log.tool("r", f"c{number}", "tool-finished", tool_name="look", output="x")
    log.end("r", "m1")
    events = entries(log)
    for asked in (250, len(events)):
        client = fold(initial(ROOT), events[:3])
        client = merge_page(client, sent(fold(initial(), events[:asked])))
        client = fold(client, events[3:])
        assert shown(client) == shown(fold(initial(), events))
        assert len(client["turns"]["m1"]["items"]) < 300


def test_older_items_that_are_ahead_are_left_alone_by_events_that_they_have_seen():
    log = Log().begin("r", "m1")
    for number in range(3):
        log.tool("r", f"c{number}", "tool-started", tool_name="look", input={})
    began = len(log.frames)
    for number in range(3):
        log.tool("r", f"c{number}", "tool-output-delta", delta="once ")
    asked = len(log.frames)
    log.tool("r", "c0", "tool-output-delta", delta="more")
    events = entries(log)
    client = fold(initial(ROOT), events[:began])
    client = merge_items(client, turn_items(fold(initial(), events[:asked]), "m1", limit=200))
    client = fold(client, events[began:])
    assert [item["output"] for item in client["turns"]["m1"]["items"]] == ["once more", "once ", "once "]


def test_text_that_is_ahead_is_not_said_twice():
    log = Log().begin("r", "m1").open("r", "a").delta("r", "a", "one ")
    began = len(log.frames)
    log.delta("r", "a", "two ").delta("r", "a", "three ")
    events = entries(log)
    client = fold(initial(ROOT), events[:began])
    client = merge_items(client, turn_items(fold(initial(), events), "m1", limit=200))
    client = fold(client, events[began:])
    assert client["turns"]["m1"]["items"][0]["text"] == "one two three "


def test_an_older_turn_that_changed_while_its_page_was_on_its_way_is_as_it_is_now():
    log = turns("m1", "m2", "m3")
    asked = len(log.frames)
    message = {"id": "w", "role": "assistant", "content": "written meanwhile"}
    log.fact(None, "message", turn_id="m2", message=message)
    log.fact(None, "message", turn_id="m3", message={**message, "id": "v"})
    events = entries(log)
    client = fold(from_page(sent(fold(initial(), events[:asked]), limit=1)), events[asked:])
    older = sent(fold(initial(), events[:asked]), before_seq=client["turns"]["m3"]["seq"])
    client = merge_page(client, older, events[asked:])
    assert shown(client) == shown(fold(initial(), events))
    assert [item["id"] for item in client["turns"]["m2"]["items"]] == ["lc-by-r-m2:0", "w:0"]


def test_an_older_page_forgets_no_sibling():
    log = turns("m1", "m2")
    asked = len(log.frames)
    log.turn("r-new", "new", "m1", "another answer")
    events = entries(log)
    client = fold(from_page(sent(fold(initial(), events[:asked]), limit=1)), events[asked:])
    client = merge_page(client, sent(fold(initial(), events[:asked])))
    assert shown(client)["turns"][-1]["siblings"] == {"index": 1, "count": 2, "ids": ["m2", "new"]}
    assert shown(client) == shown(fold(initial(), events))


def test_a_page_that_does_not_show_what_is_going_on_knows_of_it():
    log = turns("m1", "m2").begin("r", "m3", "m2").open("r", "a")
    cut = len(log.frames)
    log.delta("r", "a", "x").tool("r", "c", "tool-started", tool_name="look", input={})
    events = entries(log)
    older = sent(fold(initial(), events[:cut]), limit=1, around_seq=1)
    client = fold(from_page(older), events[cut:])
    assert list(client["turns"]) == ["m1"]
    assert client["head"] == "m3"


def test_a_question_that_a_page_shows_as_answered_is_not_asked_again():
    name = "question"
    events = entries_of(name)
    asked = next(at for at, entry in enumerate(events) if entry.method == "input.requested")
    ahead = sent(folded(name))
    client = merge_page(fold(initial(ROOT), events[:asked]), ahead)
    client = fold(client, events[asked : asked + 3])
    (request,) = client["requests"].values()
    assert request["state"] == "decided"
    (item,) = (item for turn in client["turns"].values() for item in turn["items"] if item["kind"] == "request")
    assert item["state"] == "decided"


def test_a_log_without_facts_goes_on_behind_a_page_that_was_ahead():
    name = "a log older than the facts"
    events = entries_of(name)
    for began in range(len(events)):
        for asked in range(began, len(events) + 1):
            client = merge_page(fold(initial(ROOT), events[:began]), sent(folded(name, asked), limit=1))
            client = fold(client, events[began:])
            assert shown(client)["head"] == folded(name)["head"]
            assert shown(client)["turns"] == shown(folded(name))["turns"]


def test_a_subagent_that_is_expanded_before_it_did_anything_is_whole():
    name = "subagent"
    events = entries_of(name)
    cut = next(at for at in range(len(events)) if children(folded(name, at)))
    (below,) = children(folded(name, cut))
    client = merge_page(fold(initial(ROOT), events[:cut]), sent(folded(name, cut), namespace=below))
    client = fold(client, events[cut:])
    assert shown(client, below)["turns"] == shown(folded(name), below)["turns"]


def test_a_subagents_question_that_the_threads_page_told_of_first_is_among_what_the_subagent_did():
    name = "approval in a subagent"
    events = entries_of(name)
    (below,) = children(folded(name))
    opened = next(at for at in range(len(events)) if children(folded(name, at)))
    for asked in range(opened, len(events) + 1):
        client = merge_page(fold(initial(ROOT), events[:opened]), sent(folded(name, opened), namespace=below))
        client = fold(merge_page(client, sent(folded(name, asked))), events[opened:])
        assert shown(client, below)["turns"] == shown(folded(name), below)["turns"], asked


def test_the_last_frame_of_a_run_whose_turn_is_not_loaded_makes_no_turn():
    events = entries(turns("m1", "m2", "m3"))
    for cut in range(len(events) + 1):
        server = fold(initial(), events[:cut])
        client = fold(from_page(sent(server, limit=1, around_seq=1)), events[cut:])
        assert client["head"] == "m3"
        assert set(client["turns"]) <= {"m1", "m2", "m3"}, cut
