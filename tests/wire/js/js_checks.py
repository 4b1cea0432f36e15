"""Whether what a scene saw of a `Case` is what it must be: for ThreadStream, for StreamController."""

from __future__ import annotations

from typing import Any

from js_cases import Case

Seen = dict[str, Any]


def check_stream(case: Case, seen: Seen, *, killed: bool = False) -> None:
    """One turn of a ThreadStream. `killed`: the server was, while it told something; that comes again."""
    _check_texts(_streamed(case), seen["messages"], killed=killed)
    assert seen["interrupted"] is bool(case.asked)
    assert [_asked(question) for question in seen["asked"]] == list(case.asked)
    for question in seen["asked"]:
        _check_question(case, question)
    _check_end(case, seen["end"])
    _check_conversation(case, seen["final"])
    if case.reasoning:
        assert seen["messages"][-1]["reasoning"] == case.reasoning
    if not case.asked:
        _check_stream_calls(case, seen, killed=killed)
        assert seen["output"][-len(seen["final"]) :] == seen["final"]


def check_screen(case: Case, seen: Seen) -> None:
    """One turn on the screen of a StreamController."""
    _check_conversation(case, seen["messages"])
    assert seen["values"] == seen["messages"]
    assert seen["reasoning"] == ([case.reasoning] if case.reasoning else [])
    assert [_asked(question) for question in seen["asked"]] == list(case.asked)
    for question in seen["asked"]:
        _check_question(case, question)
    assert (seen["interrupts"], seen["loading"]) == (0, False)
    assert seen["error"] == (case.failed[1] if case.failed else None)
    own = [call for call in case.calls if call[1] != "The person refused"]  # which never ran
    calls = [(call["name"], call["output"]) for call in seen["calls"] if call["status"] == "finished"]
    _check_calls(own, calls[len(calls) - len(own) :])
    assert {call["name"] for call in seen["calls"]} == {name for name, _ in own}
    if case.inner:
        agent = seen["subagents"][-1]
        assert (agent["name"], agent["status"], len(agent["namespace"])) == ("clerk", "complete", 1)
        card = seen["card"]
        assert [text for kind, text in card["messages"] if kind == "ai"] == list(case.inner)
        _check_calls(case.inner_calls, [(call["name"], call["output"]) for call in card["calls"]])
    else:
        assert seen["subagents"] == []


def _streamed(case: Case) -> list[str]:
    """The messages of the run until it ends or waits, a subagent's included."""
    if case.asked:
        return [case.answers[0], *case.inner[:1]]
    return [case.answers[0], *case.inner, *case.answers[1:]]


def _check_texts(expected: list[str], messages: list[Seen], *, killed: bool) -> None:
    """Where the server was killed, the beginning of one message may be there as well: it was being told just then."""
    texts = [message["text"] for message in messages]
    if killed and len(texts) > len(expected):
        cuts = [at for at, text in enumerate(texts) if "broken" in messages[at] or text not in expected]
        assert cuts, f"a whole message twice: {texts}"
        assert expected[cuts[0]].startswith(texts.pop(cuts[0]))
    assert texts == expected


def _check_conversation(case: Case, messages: list[list[str]]) -> None:
    assert messages[0] == ["human", case.text]
    assert [text for kind, text in messages if kind == "ai"] == list(case.stored)
    _check_calls(case.calls, [("", text) for kind, text in messages if kind == "tool"], names=False)


def _check_calls(expected: Any, calls: list[tuple[str, str]], *, names: bool = True) -> None:
    assert len(calls) == len(expected)
    for (name, beginning), (called, result) in zip(expected, calls, strict=True):
        assert called == name or not names
        if beginning.startswith("Note: ") and names:  # the frame has what the tool said, the model is told more
            assert result == "mail sent to cyd"
        else:
            assert result.startswith(beginning)


def _asked(question: Seen) -> str:
    return str(question["payload"]["actionRequests"][0]["args"]["to"])


def _check_question(case: Case, question: Seen) -> None:
    payload, namespace = question["payload"], question["namespace"]
    assert len(payload["actionRequests"]) == 1
    assert payload["action_requests"][0]["args"] == payload["actionRequests"][0]["args"]
    assert payload["actionRequests"][0]["argsSchema"]["required"] == ["to"]
    (rules,) = payload["reviewConfigs"]
    assert rules["actionName"] == "mail"
    assert set(rules["allowedDecisions"]) == {"approve", "edit", "reject", "respond"}
    assert payload["review_configs"][0]["allowed_decisions"] == rules["allowedDecisions"]
    nested = bool(case.inner)
    assert bool(namespace) is nested
    assert all(segment.startswith("tools:") for segment in namespace)


def _check_end(case: Case, end: Seen) -> None:
    if case.failed is None:
        assert end == {"event": "completed", "code": None, "error": None}
    else:
        assert (end["event"], end["code"], end["error"]) == ("failed", *case.failed)


def _check_stream_calls(case: Case, seen: Seen, *, killed: bool) -> None:
    own = [call for call in seen["calls"] if call["depth"] == 1]
    inner = [call for call in seen["calls"] if call["depth"] == 2]
    assert len(own) + len(inner) == len(seen["calls"])
    _check_calls(case.calls, [_ended(call) for call in own])
    _check_calls(case.inner_calls, [_ended(call) for call in inner])
    assert len(seen["subagents"]) == bool(case.inner)
    for agent in seen["subagents"]:
        assert agent["name"] == "clerk"
        assert [segment.split(":")[0] for segment in agent["namespace"]] == ["tools"]
        _check_texts(list(case.inner), agent["messages"], killed=killed)
        _check_calls(case.inner_calls, [_ended(call) for call in agent["calls"]])


def _ended(call: Seen) -> tuple[str, str]:
    return call["name"], call.get("output") or call["error"]
