"""What a client attaches to a message is checked and kept; it says nothing of the message's place (spec/12 §1.1)."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pizzabot.host.runs.message_metadata import (
    MAX_LABEL,
    MAX_MENTION_ID,
    MAX_MENTIONS,
    MAX_QUOTE,
    MAX_QUOTES,
    MAX_REFERENCES,
)
from pizzabot.host.runs.requests import input_of, messages_of, parse_run_start
from pizzabot_hookspecs import InvalidRequest

ATTACHED = {
    "mentions": [
        {"provider": "skills", "id": "invoices", "label": "Invoices"},
        {"provider": "artifacts", "id": "/a.md"},
    ],
    "quotes": ["to be kept"],
    "references": ["t-2", "t-3"],
}
PLACE = ("additional_kwargs", "pizzabot")


def request(message):
    return parse_run_start(
        "t1", {"input": {"messages": [{"id": "m-1", "content": "hi", **message}]}}, idempotency_key=None
    )


def with_pizzabot(given):
    return request({"additional_kwargs": {"pizzabot": given}})


def kept(message):
    return request(message).messages[0].metadata


def test_what_is_attached_is_kept_with_the_run():
    asked = with_pizzabot(ATTACHED)
    (stored,) = messages_of(json.loads(json.dumps(input_of(asked))))
    assert stored.metadata == ATTACHED


def test_the_form_with_parts_has_it_as_metadata():
    parts = {"content": None, "parts": [{"type": "text", "text": "hi"}]}
    assert kept({**parts, "metadata": ATTACHED}) == ATTACHED
    assert kept({**parts, "metadata": ATTACHED, "additional_kwargs": {"pizzabot": {"quotes": ["q"]}}}) == {
        "quotes": ["q"]
    }
    assert kept({"metadata": ATTACHED}) == {}


@pytest.mark.parametrize(
    "message",
    [{}, {"additional_kwargs": None}, {"additional_kwargs": {}}, {"additional_kwargs": {"pizzabot": None}},
     {"additional_kwargs": {"pizzabot": {"quotes": [], "mentions": None}, "other": 1}}],
)  # fmt: skip
def test_nothing_attached_is_nothing_kept(message):
    assert kept(message) == {}


def test_what_is_the_servers_to_say_and_what_nobody_knows_is_dropped():
    forged = {"seq": 1, "rev": 9, "run_id": "r", "turn_id": "t", "owner": "x", "grants": ["t-9"], "source": "trigger"}
    attached = {**ATTACHED, **forged, "mentions": [{**ATTACHED["mentions"][0], **forged}, ATTACHED["mentions"][1]]}
    message = {**forged, "metadata": forged, "response_metadata": forged, "additional_kwargs": {"pizzabot": attached}}
    (stored,) = input_of(request(message))["messages"]
    assert stored == {
        "id": "m-1",
        "role": "user",
        "parts": [{"type": "text", "text": "hi"}],
        "metadata": ATTACHED,
    }


def test_all_of_it_up_to_the_limits_is_kept():
    full = {
        "mentions": [{"provider": "p" * 64, "id": "i" * MAX_MENTION_ID, "label": "l" * MAX_LABEL}] * MAX_MENTIONS,
        "quotes": ["q" * MAX_QUOTE] * MAX_QUOTES,
        "references": [f"t-{number}" for number in range(MAX_REFERENCES)],
    }
    assert kept({"additional_kwargs": {"pizzabot": full}}) == full
    assert with_pizzabot({"references": ["t", "u", "t"]}).messages[0].metadata == {"references": ["t", "u"]}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (3, ""), ([], ""),
        ({"mentions": {}}, "mentions"), ({"mentions": [ATTACHED["mentions"][0]] * (MAX_MENTIONS + 1)}, "mentions"),
        ({"mentions": ["x"]}, "mentions.0"), ({"mentions": [{"id": "x"}]}, "mentions.0.provider"),
        ({"mentions": [{"provider": "Skills", "id": "x"}]}, "mentions.0.provider"),
        ({"mentions": [{"provider": "s"}]}, "mentions.0.id"),
        ({"mentions": [{"provider": "s", "id": 1}]}, "mentions.0.id"),
        ({"mentions": [{"provider": "s", "id": "i" * (MAX_MENTION_ID + 1)}]}, "mentions.0.id"),
        ({"mentions": [{"provider": "s", "id": "i", "label": "l" * (MAX_LABEL + 1)}]}, "mentions.0.label"),
        ({"mentions": [{"provider": "s", "id": "i", "label": []}]}, "mentions.0.label"),
        ({"quotes": "q"}, "quotes"), ({"quotes": ["q"] * (MAX_QUOTES + 1)}, "quotes"),
        ({"quotes": ["q", " "]}, "quotes.1"), ({"quotes": ["q" * (MAX_QUOTE + 1)]}, "quotes.0"),
        ({"quotes": [{"text": "q"}]}, "quotes.0"),
        ({"references": "t"}, "references"), ({"references": ["t"] * (MAX_REFERENCES + 1)}, "references"),
        ({"references": ["a b"]}, "references.0"), ({"references": ["t", 5]}, "references.1"),
        ({"references": ["list"]}, "references.0"),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_refused_with_the_field(given, field):
    with pytest.raises(InvalidRequest) as refused:
        with_pizzabot(given)
    assert refused.value.code == "invalid_argument"
    assert list(refused.value.fields) == [".".join(["input.messages.0", *PLACE, *([field] if field else [])])]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"additional_kwargs": []}, "additional_kwargs"),
        ({"parts": [{"type": "text", "text": "hi"}], "metadata": 3}, "metadata"),
    ],
)
def test_a_place_of_the_wrong_shape_is_refused(message, field):
    with pytest.raises(InvalidRequest) as refused:
        request(message)
    assert list(refused.value.fields) == [f"input.messages.0.{field}"]


def test_what_is_attached_counts_for_the_fingerprint():
    assert with_pizzabot(ATTACHED).fingerprint == with_pizzabot(ATTACHED).fingerprint
    fewer = {**ATTACHED, "references": ["t-2"]}
    assert len({one.fingerprint for one in (with_pizzabot(ATTACHED), with_pizzabot(fewer), request({}))}) == 3


KEYS = ("mentions", "quotes", "references", "provider", "id", "label")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(("skills", "\ud800", "t-1")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(given_kwargs=JSON | st.fixed_dictionaries({"pizzabot": JSON}))
def test_whatever_is_attached_is_kept_in_its_shape_or_refused(given_kwargs):
    told = None
    metadata = {}
    try:
        metadata = kept({"additional_kwargs": given_kwargs})
    except InvalidRequest as refused:
        told = refused
    assert told is None or (told.code == "invalid_argument" and told.fields)
    assert metadata.keys() <= {"mentions", "quotes", "references"}
    assert kept({"additional_kwargs": {"pizzabot": metadata}}) == metadata
