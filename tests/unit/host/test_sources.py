"""Sources are read from results of tools, in every shape that has some, and from nothing else (spec/12 §1.1)."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pizzabot.host.runs import sources
from pizzabot.host.runs.sources import (
    MAX_ENTRIES,
    MAX_EXCERPT,
    MAX_JSON_TEXT,
    MAX_SOURCES,
    MAX_TITLE,
    MAX_URL,
    sources_fact,
    sources_fact_of,
    sources_of,
)
from pizzabot.host.text import to_json

NOW = 1_796_000_000_000
DOUGH = {"title": "Dough", "url": "https://example.org/dough", "content": "Flour and water."}
OVENS = {"title": "Ovens", "url": "http://example.org/ovens", "snippet": "Hot."}


def read(output):
    return sources_of(output, now_ms=NOW)


def told(content, **more):
    return {"type": "tool", "content": content, "tool_call_id": "c1", "status": "success", **more}


def brief(output):
    return [(one["title"], one.get("url"), one["excerpt"]) for one in read(output)]


BOTH = [("Dough", DOUGH["url"], "Flour and water."), ("Ovens", OVENS["url"], "Hot.")]


@pytest.mark.parametrize(
    "output",
    [
        [DOUGH, OVENS],
        {"query": "pizza", "results": [DOUGH, OVENS]},
        {"type": "sources", "sources": [DOUGH, OVENS]},
        json.dumps([DOUGH, OVENS]),
        told(json.dumps([DOUGH, OVENS])),
        told(json.dumps({"query": "pizza", "results": [DOUGH, OVENS]})),
        told([{"type": "text", "text": json.dumps([DOUGH])}, {"type": "text", "text": json.dumps([OVENS])}]),
        told("two pages", artifact={"type": "sources", "sources": [DOUGH, OVENS]}),
        {"lg_name": "Command", "update": {"messages": [told(json.dumps([DOUGH, OVENS]))]}},
        told(
            [
                {"type": "text", "text": "see"},
                {"type": "resource_link", "uri": DOUGH["url"], "name": "Dough", "description": "Flour and water."},
                {"type": "resource", "resource": {"uri": OVENS["url"], "title": "Ovens", "text": "Hot."}},
            ]
        ),
    ],
)
def test_every_shape_with_sources_gives_them(output):
    assert brief(output) == BOTH


@pytest.mark.parametrize(
    "output",
    [
        None, 4, "", "prose with https://example.org/ and [a](#source-s1)", "[1, 2]", {}, [], told(""), told(None),
        [{"name": "notes.txt", "size": 4}], {"results": [DOUGH]}, {"query": "x", "results": {}},
        told(json.dumps([DOUGH]), status="error"), {"type": "sources", "sources": 3}, DOUGH,
        {"lg_name": "Command", "update": {"messages": [{"type": "human", "content": json.dumps([DOUGH])}]}},
        json.dumps(json.dumps([DOUGH])), [json.dumps([DOUGH])],
        json.dumps([{"type": "text", "text": json.dumps([DOUGH])}]),
    ],
)  # fmt: skip
def test_everything_else_has_none(output):
    assert read(output) == []


def test_a_typed_artifact_says_all_and_an_empty_one_says_that_there_are_none():
    assert brief(told(json.dumps([DOUGH]), artifact={"type": "sources", "sources": [OVENS]})) == BOTH[1:]
    assert read(told(json.dumps([DOUGH]), artifact={"type": "sources", "sources": []})) == []
    assert brief(told(json.dumps([DOUGH]), artifact={"rows": [1]})) == BOTH[:1]


def test_bad_neighbours_are_passed_over():
    bad = [None, 3, "x", [], {}, {"title": 4, "url": 5}, {"title": "", "url": ""}, {"title": "\x00 \ud800"}]
    assert brief({"query": "q", "results": [*bad, DOUGH, *bad, OVENS]}) == BOTH
    assert brief([*bad, DOUGH, {"title": "no address"}, OVENS]) == BOTH


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "//example.org", "https://", "http://[",
        "https://a b/", "https://a/\n", "https://a/\x00", "https://a/\ud800", "ftp://example.org/x",
        "https://a/" + "x" * MAX_URL,
    ],
)  # fmt: skip
def test_an_address_that_is_not_of_the_web_is_left_out_and_its_entry_stays(url):
    expected = [("Page", url.strip(), "t")] if url == "https://a/\n" else [("Page", None, "t")]
    assert brief([{"title": "Page", "url": url, "text": "t"}]) == expected


def test_an_address_stands_in_for_a_missing_title():
    assert brief([{"url": "HTTPS://Example.org/a"}]) == [("HTTPS://Example.org/a", "HTTPS://Example.org/a", "")]
    link = {"type": "resource_link", "uri": "notes://dough"}
    assert brief(told([link])) == [("notes://dough", None, "")]


def test_a_source_has_one_id_wherever_it_turns_up_and_no_two_share_one():
    first, again = read([DOUGH, OVENS]), read({"query": "q", "results": [{**DOUGH, "content": "else"}, DOUGH]})
    assert [one["id"] for one in again] == [first[0]["id"]]
    unnamed = [{"title": "a", "text": "b"}, {"title": "a", "text": "c"}, {"title": "a", "text": "b"}]
    ids = [one["id"] for one in first + read({"query": "q", "results": unnamed})]
    assert len(set(ids)) == len(ids) == 4
    assert all(one.isascii() and one.isalnum() for one in ids)


def test_a_source_keeps_to_its_limits():
    long = {"title": "a\n b\x07" + "t" * 9_999, "url": "https://a/", "content": "\x00x\ud800y" + "🍕" * 9_999}
    (source,) = read([long])
    assert source == {
        "id": source["id"],
        "title": ("a b " + "t" * 9_999)[:MAX_TITLE],
        "url": "https://a/",
        "excerpt": ("x y" + "🍕" * 9_999)[:MAX_EXCERPT],
        "retrievedAt": NOW,
    }
    many = [{"title": f"{number}", "url": f"https://a/{number}"} for number in range(MAX_SOURCES + 9)]
    assert [one["title"] for one in read(many)] == [f"{number}" for number in range(MAX_SOURCES)]


def test_only_the_first_entries_and_the_first_text_are_looked_at():
    assert read([None] * (MAX_ENTRIES - 1) + [DOUGH]) == []  # the result itself is one
    assert brief([None] * (MAX_ENTRIES - 2) + [DOUGH]) == BOTH[:1]
    padded = json.dumps([DOUGH]).ljust(MAX_JSON_TEXT)
    assert brief(padded) == BOTH[:1]
    assert read(padded + " ") == []
    assert brief(told([{"type": "text", "text": padded}, {"type": "text", "text": json.dumps([OVENS])}])) == BOTH[:1]


def test_unpaired_surrogates_in_json_text_do_not_hide_the_rest():
    assert brief('[{"title": "a\\ud800", "url": "https://a/"}, {"title": "\\ud83c\\udf55", "url": "https://b/"}]') == [
        ("a", "https://a/", ""),
        ("🍕", "https://b/", ""),
    ]


def test_a_text_that_is_deeper_than_the_parser_goes_has_none():
    assert read('["\\ud800",' + "[" * 90_000 + "]" * 90_000 + "]") == []


@pytest.mark.parametrize(
    "output",
    [
        "[" + "1," * 2_500_000 + "1]",
        "[" + "{}," * 60_000 + "{}]",
        {"query": "q", "results": [{"title": "x" * 5_000_000, "url": "h" * 5_000_000, "text": " " * 5_000_000}] * 100},
        {"query": "q", "results": [{"title": "\n\x01" * 300, "url": "https://a/", "text": "\x00\ud800 " * 999}] * 9999},
    ],
    ids=["5 MB", "objects", "long texts", "dirty texts"],
)
def test_of_large_results_a_bounded_part_is_looked_at(output, monkeypatch):
    looked_at, parsed = [], []
    real, loads = sources._entry, sources.orjson.loads
    monkeypatch.setattr(sources, "_entry", lambda *args, **more: looked_at.append(1) or real(*args, **more))
    monkeypatch.setattr(sources.orjson, "loads", lambda text: parsed.append(len(text)) or loads(text))
    assert len(read(output)) <= MAX_SOURCES
    assert len(looked_at) <= MAX_ENTRIES
    assert sum(parsed) <= MAX_JSON_TEXT


def test_the_fact_names_the_graph_and_the_call():
    data = {"event": "tool-finished", "tool_call_id": "c1", "output": [DOUGH]}
    payload = sources_fact_of(("tools:s", "tools:x"), data, now_ms=NOW)
    assert payload == {"v": 1, "call_id": "c1", "namespace": ["tools:s"], "sources": read([DOUGH])}
    assert payload == sources_fact("c1", ("tools:s",), read([DOUGH]))


@pytest.mark.parametrize(
    ("namespace", "data"),
    [
        (("tools:x",), {"event": "tool-finished", "tool_call_id": "c1", "output": "plain"}),
        (("tools:x",), {"event": "tool-finished", "tool_call_id": "c1"}),
        (("tools:x",), {"event": "tool-finished", "output": [DOUGH]}),
        (("tools:x",), {"event": "tool-started", "tool_call_id": "c1", "input": [DOUGH], "output": [DOUGH]}),
        (("tools:x",), {"event": "tool-error", "tool_call_id": "c1", "output": [DOUGH]}),
        ((), {"event": "tool-finished", "tool_call_id": "c1", "output": [DOUGH]}),
    ],
)
def test_no_fact_without_a_source_in_the_result_of_a_call(namespace, data):
    assert sources_fact_of(namespace, data, now_ms=NOW) is None


KEYS = (
    "type", "content", "artifact", "sources", "lg_name", "update", "messages", "status", "query", "results", "title",
    "name", "url", "link", "uri", "resource", "text", "snippet", "excerpt",
)  # fmt: skip
WORDS = (
    "tool", "Command", "sources", "text", "resource", "resource_link", "error", "https://a/", "http://[", "\0",
    "\ud800", "[]", '[{"title":"a","url":"https://a/"}]', "{", '["\\ud800"]', "[" * 2_000,
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=6)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(output=JSON | st.fixed_dictionaries({"type": st.just("tool"), "content": JSON}, optional={"artifact": JSON}))
@example(output={"lg_name": "Command", "update": {"messages": [{"type": "tool"}, None]}})
def test_whatever_a_tool_returns_its_sources_are_well_formed(output):
    found = read(output)
    assert json.loads(to_json(found)) == found
    assert len({one["id"] for one in found}) == len(found) <= MAX_SOURCES
    for one in found:
        assert {"id", "title", "excerpt", "retrievedAt"} <= one.keys() <= {*one.keys(), "url"}
        assert 0 < len(one["title"]) <= MAX_TITLE
        assert len(one["excerpt"]) <= MAX_EXCERPT
        assert one.get("url", "https://").lower().startswith(("http://", "https://"))
