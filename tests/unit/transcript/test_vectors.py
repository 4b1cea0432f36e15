"""The vectors that both folds pass say what this fold does, and what a recording of today does (statements 1 and 2)."""

import json

import pytest
from fold_logs import NAMES, VECTORS, entries_of, fold, folded, from_page, page, shown
from fold_recording import SCENES, record
from fold_written import WRITTEN
from make import vector


@pytest.mark.parametrize("name", NAMES)
def test_a_vector_holds(name):
    made = VECTORS[name]
    assert json.loads(json.dumps(folded(name))) == made["state"]
    entries = entries_of(name)
    for case in made["pages"]:
        args = dict(case["args"])
        at = args.pop("at", entries[-1].seq)
        state = folded(name, sum(entry.seq <= at for entry in entries))
        assert json.loads(json.dumps(page(state, thread_id="t", **args))) == case["page"]
        if "then" in case:
            assert fold(from_page(case["page"]), entries) == case["then"]


def test_every_case_has_its_vector():
    assert sorted([*WRITTEN, *SCENES]) == NAMES
    for name, make in WRITTEN.items():
        assert json.loads(json.dumps(vector(name, make().frames))) == VECTORS[name], name


@pytest.mark.parametrize("name", ["parallel tools", "approval in a subagent", "crash and recovery", "edit"])
def test_a_run_of_today_folds_to_what_the_vector_shows(name):
    today = vector(name, record(name))["state"]
    assert [_told(turn) for turn in today["turns"].values()] == [
        _told(turn) for turn in VECTORS[name]["state"]["turns"].values()
    ]


def _told(turn):
    items = [
        (item["kind"], item.get("state"), item.get("text"), item.get("output"), item.get("name"))
        for item in turn["items"]
    ]
    return turn["id"], turn["parentId"], turn["status"], sorted(items, key=str)


def test_what_a_person_sees_of_a_delegated_approval():
    got = shown(folded("approval in a subagent"))
    (turn,) = got["turns"]
    assert [(item["kind"], item["state"]) for item in turn["items"]] == [
        ("text", "done"),
        ("subagent", "done"),
        ("tool", "done"),
        ("request", "decided"),
        ("text", "done"),
    ]
    (card,) = (item for item in turn["items"] if item["kind"] == "subagent")
    assert (card["name"], card["title"], card["output"], card["steps"]) == ("clerk", "Do it", "reported", 2)
    below = shown(folded("approval in a subagent"), card["child"])
    assert [item["kind"] for item in below["turns"][0]["items"]] == ["tool", "tool", "request", "text"]
