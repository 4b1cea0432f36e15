"""The frames themselves, of every scenario and every way that a run is broken off, against the rules of the wire."""

from __future__ import annotations

import copy
from uuid import uuid4

import pytest
from frame_rules import check_stream, runs_of
from scenarios import ENDLESS, SCENARIOS, WORDS, tool
from sdk import in_thread, played
from talking import HttpConversation, frame_with, frames_of, say
from turns import middle, nothing, restart, subject


async def begun(talk, thread_id, text, **params):
    answer = await say(talk, thread_id, text, **params)
    assert answer["type"] == "success", answer
    return answer["result"]["run_id"]


async def whole_log(talk, thread_id, last_run):
    """Every frame of the thread up to the end of its last run."""
    seen = []
    stream = talk.frames(thread_id, since=0)
    try:
        async for frame in stream:
            seen.append(frame)
            if frame["event_id"].split(":")[1] == last_run and ended(frame):
                return seen
    finally:
        await stream.aclose()
    raise AssertionError("the stream ended")


def ended(frame):
    return (
        frame["method"] == "lifecycle"
        and not frame["params"]["namespace"]
        and (frame["params"]["data"]["event"] in ("completed", "failed", "interrupted"))
    )


async def respond(talk, thread_id, asked, answers):
    responses = [
        {"interrupt_id": frame["interrupt_id"], "response": answers[subject(frame["payload"])]} for frame in asked
    ]
    answer = await talk.command(thread_id, "input.respond", {"responses": responses})
    assert answer["type"] == "success", answer
    return answer["result"]["run_id"]


async def turn_by_hand(place, thread_id, scenario, happens=nothing):
    """Play a scenario without an SDK; the id of its last run."""
    mark = uuid4().hex
    if scenario.gate:
        place.gates.hold(f"{scenario.gate} {mark}")
    async with HttpConversation(place.server.http) as talk:
        run_id = await begun(talk, thread_id, scenario.script(mark))
        if scenario.answers:
            paused = await frames_of(talk, thread_id, run_id)
            asked = [frame["params"]["data"] for frame in paused if frame["method"] == "input.requested"]
            run_id = await respond(talk, thread_id, asked, scenario.answers)
        await middle(place, thread_id, scenario, mark)
    await in_thread(lambda: happens(place))
    if scenario.gate:
        place.gates.release(f"{scenario.gate} {mark}")
    return run_id


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_two_turns_keep_every_rule(shared_place, scenario):
    async def scene():
        thread_id = uuid4().hex
        for _ in range(2):
            run_id = await turn_by_hand(shared_place, thread_id, scenario)
            async with HttpConversation(shared_place.server.http) as talk:
                log = await whole_log(talk, thread_id, run_id)
        check_stream(log)
        assert len(runs_of(log)) == (4 if scenario.answers else 2)
        async with HttpConversation(shared_place.server.http) as talk:
            state = await talk.state(thread_id)
        assert (state["next"], state["tasks"]) == ([], [])

    played(scene())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_turn_across_a_kill_keeps_every_rule(place, scenario):
    async def scene():
        run_id = await turn_by_hand(place, "t", scenario, restart)
        async with HttpConversation(place.server.http) as talk:
            check_stream(await whole_log(talk, "t", run_id))

    played(scene())


def test_stopped_superseded_and_queued_turns_keep_every_rule(shared_place):
    async def scene():
        thread_id = uuid4().hex
        async with HttpConversation(shared_place.server.http) as talk:
            stopped = await begun(talk, thread_id, f"[[pace 0.01]]{ENDLESS}")
            await frame_with(talk, thread_id, "w9")
            assert (await talk.command(thread_id, "run.stop", {"run_id": stopped}))["type"] == "success"
            await begun(talk, thread_id, f"[[pace 0.01]]{ENDLESS.replace('w', 'v')}")
            await frame_with(talk, thread_id, "v9")
            await begun(talk, thread_id, f"[[pace 0.005]]{WORDS.replace('w', 'u')}")
            await begun(talk, thread_id, "queued", multitask_strategy="enqueue")
            last = await begun(talk, thread_id, "queued too", multitask_strategy="enqueue")
            log = await whole_log(talk, thread_id, last)
        check_stream(log)
        assert [
            (run[-1]["params"]["data"]["event"], run[-1]["params"]["data"].get("code")) for run in runs_of(log)
        ] == [
            ("completed", "CANCELLED"),
            ("interrupted", "SUPERSEDED"),
            *[("completed", None)] * 3,
        ]

    played(scene())


def test_calls_that_cannot_run_keep_every_rule(shared_place):
    """A tool that there is not, arguments that do not fit, and one that fails, beside one that runs."""

    async def scene():
        thread_id = uuid4().hex
        words = f"{tool('nothing')} {tool('post', to=3)} {tool('boom', why='x')} {tool('note', text='n')} [[then]] done"
        async with HttpConversation(shared_place.server.http) as talk:
            log = await whole_log(talk, thread_id, await begun(talk, thread_id, words))
        check_stream(log)
        ends = [frame["params"]["data"] for frame in log if frame["method"] == "tools"]
        failed = sorted(data.get("tool_name") or "" for data in ends if data["event"] == "tool-error")
        assert len(failed) == 3
        told = [frame["params"]["data"] for frame in log if frame["method"] == "custom"]
        custom = [data for data in told if not data.get("name", "").startswith("pizzabot.")]
        assert custom == [{"name": "progress", "payload": {"text": "n"}}, {"payload": {"half": "n"}}]

    played(scene())


def test_a_delegated_turns_result_is_a_command_by_name(shared_place):
    async def scene():
        thread_id = uuid4().hex
        (subagent,) = [scenario for scenario in SCENARIOS if scenario.name == "subagent"]
        run_id = await turn_by_hand(shared_place, thread_id, subagent)
        async with HttpConversation(shared_place.server.http) as talk:
            log = await whole_log(talk, thread_id, run_id)
        results = [frame["params"]["data"].get("output") for frame in log if frame["method"] == "tools"]
        commands = [output for output in results if isinstance(output, dict) and "update" in output]
        assert [command["lg_name"] for command in commands] == ["Command"]
        return log

    check_stream(played(scene()))


def test_the_rules_find_what_breaks_clients(shared_place):
    """The negative switches: frames that are wrong in one way each, in which real clients were seen to go wrong."""

    async def scene():
        thread_id = uuid4().hex
        (subagent,) = [scenario for scenario in SCENARIOS if scenario.name == "subagent"]
        run_id = await turn_by_hand(shared_place, thread_id, subagent)
        async with HttpConversation(shared_place.server.http) as talk:
            return await whole_log(talk, thread_id, run_id)

    log = played(scene())
    check_stream(log)
    found = []
    for spoil in SPOILS:
        spoilt = copy.deepcopy(log)
        spoil(spoilt)
        try:
            check_stream(spoilt)
        except AssertionError:
            found.append(spoil)
    assert found == list(SPOILS)


def _native_namespaces(log):
    for frame in log:
        if frame["method"] in ("messages", "tools"):
            frame["params"]["namespace"] = frame["params"]["namespace"][:-1]


def _plain_ids(log):
    for frame in log:
        frame["event_id"] = str(frame["seq"])


def _values_first(log):
    last = max(i for i, frame in enumerate(log) if frame["method"] == "values" and not frame["params"]["namespace"])
    first, then = log[last - 1], log[last]
    first["method"], then["method"] = then["method"], first["method"]
    first["params"]["data"], then["params"]["data"] = then["params"]["data"], first["params"]["data"]


def _started_root(log):
    log[0]["params"]["data"]["event"] = "started"


def _with_reason(log):
    log[-1]["params"]["data"] = {"event": "failed", "error": "x", "code": "GENERAL", "reason": "x"}


def _interrupt_in_values(log):
    next(frame for frame in log if frame["method"] == "values")["params"]["data"]["__interrupt__"] = []


def _unnamed_command(log):
    for frame in log:
        output = frame["params"]["data"].get("output")
        if isinstance(output, dict):
            output.pop("lg_name", None)


def _time_goes_back(log):
    log[-1]["params"]["timestamp"] -= 60_000


def _one_lost(log):
    del log[3]


def _open_message(log):
    at = next(i for i, frame in enumerate(log) if frame["params"]["data"].get("event") == "message-finish")
    del log[at]
    for number, frame in enumerate(log, 1):
        frame["seq"], frame["event_id"] = number, frame["event_id"].rpartition(":")[0] + f":{number}"


SPOILS = (
    _native_namespaces,
    _plain_ids,
    _values_first,
    _started_root,
    _with_reason,
    _interrupt_in_values,
    _unnamed_command,
    _time_goes_back,
    _one_lost,
    _open_message,
)
