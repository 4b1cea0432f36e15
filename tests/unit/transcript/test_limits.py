"""A page has limits: bytes, items of a turn, text of a tool; what was left out can be had (statements 17, 47 to 49)."""

import json

import pytest
from fold_logs import THREAD, Log, entry_of_frame, fold, from_page, initial, long_thread, page, sent, shown

from pizzabot.host.transcript import merge_items, turn_items
from pizzabot.host.transcript.pages import MAX_BYTES
from pizzabot_hookspecs import NotFound


def folded(log, state=None):
    return fold(initial() if state is None else state, map(entry_of_frame, log.frames))


def steps(count, *, text="x"):
    log = Log().begin("r", "m1", text="the question")
    for number in range(count):
        log.tool("r", f"c{number}", "tool-started", tool_name="look", input={"n": number})
        log.tool("r", f"c{number}", "tool-finished", output=text)
    return log


def test_a_turn_of_5000_steps_opens_with_its_question_the_last_100_items_and_a_count():
    got = sent(folded(steps(5_000)))
    (turn,) = got["turns"]
    assert turn["message"]["content"] == [{"type": "text", "text": "the question"}]
    assert [item["callId"] for item in turn["items"]] == [f"c{number}" for number in range(4_900, 5_000)]
    assert turn["elided"] == {"count": 4_900, "beforeSeq": turn["items"][0]["seq"]}


def test_a_turn_of_200_items_is_whole():
    (turn,) = sent(folded(steps(200)))["turns"]
    assert (len(turn["items"]), "elided" in turn) == (200, False)


def test_the_rest_of_a_long_turn_comes_in_pages_and_ends_as_the_whole():
    state = folded(steps(530))
    client = from_page(sent(state))
    seen = 100
    while True:
        elided = client["turns"]["m1"].get("elided", {}).get("")
        if elided is None:
            break
        got = json.loads(json.dumps(turn_items(state, "m1", before_seq=elided["beforeSeq"], limit=200)))
        client = merge_items(client, got)
        seen += len(got["items"])
        assert len(client["turns"]["m1"]["items"]) == seen
    assert client["turns"]["m1"]["items"] == state["turns"]["m1"]["items"]
    assert merge_items(client, turn_items(state, "m1", limit=200)) == client
    with pytest.raises(NotFound, match="has no turn"):
        turn_items(state, "m2")


def test_a_long_turn_goes_on_growing_behind_a_page():
    log = steps(400)
    entries = [entry_of_frame(frame) for frame in log.frames]
    for cut in range(390, len(entries), 37):
        client = fold(from_page(sent(fold(initial(), entries[:cut]))), entries[cut:])
        assert shown(client) == shown(folded(log)), cut


def test_a_page_has_at_most_a_mebibyte_of_turns_cut_between_them():
    log, parent = Log(), None
    for number in range(30):
        log.turn(f"r{number}", f"m{number}", parent, "word " * 20_000)
        parent = f"m{number}"
    state, before, ids = folded(log), None, []
    while True:
        got = sent(state, limit=100, before_seq=before)
        assert len(json.dumps(got["turns"])) <= MAX_BYTES * 1.05
        ids = [turn["id"] for turn in got["turns"]] + ids
        if not got["hasBefore"]:
            break
        before = got["turns"][0]["seq"]
    assert ids == [f"m{number}" for number in range(30)]
    around = sent(state, limit=30, around_seq=state["turns"]["m15"]["seq"])
    assert "m15" in [turn["id"] for turn in around["turns"]]
    assert (around["hasBefore"], around["hasAfter"]) == (True, True)


def test_a_turn_that_is_larger_than_a_page_loses_its_oldest_items():
    state = folded(steps(150, text="y" * 11_900))
    got = sent(state)
    (turn,) = got["turns"]
    assert len(json.dumps(turn)) <= MAX_BYTES
    assert turn["elided"]["count"] + len(turn["items"]) == 150
    assert turn["items"][-1]["callId"] == "c149"
    rest = turn_items(state, "m1", before_seq=turn["elided"]["beforeSeq"], limit=200)
    assert len(json.dumps(rest)) <= MAX_BYTES
    assert rest["items"][-1]["callId"] == f"c{turn['elided']['count'] - 1}"


def test_a_result_of_5_megabytes_adds_12000_characters_and_the_state_has_the_whole():
    whole = json.dumps({"rows": [{"id": 12345678901234567890, "name": "pizza"}] * 120_000})
    log = Log().begin("r", "m1").tool("r", "c", "tool-started", tool_name="q", input={})
    log.tool("r", "c", "tool-finished", output=whole)
    state = folded(log)
    (item,) = sent(state)["turns"][0]["items"]
    assert item["output"] | {"preview": ""} == {
        "preview": "", "chars": len(whole), "truncated": True, "ref": {"callId": "c", "part": "output"},
    }  # fmt: skip
    assert len(item["output"]["preview"]) <= 12_000
    assert json.loads(item["output"]["preview"])["rows"][0] == {"id": 12345678901234567890, "name": "pizza"}
    assert state["turns"]["m1"]["items"][0]["output"] == whole


@pytest.mark.parametrize("end", ["message-finish", "error", "stop"])
def test_long_arguments_that_are_still_being_written_go_on_behind_a_page(end):
    log = Log().begin("r", "m1").message("r", "a", "message-start", role="ai", id="lc-a")
    chunk = {"type": "tool_call_chunk", "id": "c", "name": "write_file", "args": "", "index": 0}
    log.message("r", "a", "content-block-start", index=0, content=chunk)
    args = json.dumps({"content": "line 🍕\n" * 3_000})
    for at in range(0, len(args), 1_500):
        piece = {"type": "tool_call_chunk", "args": args[at : at + 1_500]}
        log.message("r", "a", "content-block-delta", index=0, content=piece)
    whole = {"type": "tool_call", "id": "c", "name": "write_file", "args": json.loads(args)}
    if end == "message-finish":
        log.message("r", "a", "content-block-finish", index=0, content=whole)
    if end != "stop":
        log.message("r", "a", end)
    log.end("r", "m1", "cancelled", code="CANCELLED")
    entries = [entry_of_frame(frame) for frame in log.frames]
    for cut in range(len(entries) + 1):
        client = fold(from_page(sent(fold(initial(), entries[:cut]))), entries[cut:])
        got, expected = shown(client), shown(folded(log))
        assert got["turns"][-1:] == expected["turns"][-1:], cut


def test_the_newest_page_of_a_long_thread_needs_no_walk_to_its_root():
    state = fold(initial(), long_thread())
    part = {**state, "turns": {key: state["turns"][key] for key in ("m128", "m129", "m130")}}
    got = page(part, thread_id=THREAD, limit=2)
    assert [turn["id"] for turn in got["turns"]] == ["m129", "m130"]
    assert (got["hasBefore"], page(part, thread_id=THREAD)["hasBefore"]) == (True, True)
