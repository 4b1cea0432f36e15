"""A real server is killed with SIGKILL at each step of a run, and started again; clients and log are compared."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import httpx
import pytest
from talking import frames_of, is_root_end, text_of, texts
from watching import (
    Client,
    answered,
    begun,
    caught_up,
    check_log,
    done,
    ending,
    next_message_works,
    play,
    stored_log,
    stored_runs,
    watched,
)

POST = '[[tool post {"to": "ada"}]] [[then]] posted'
MAIL = '[[tool mail {"to": "ada"}]] [[then]] mailed'
APPROVE = {"decisions": [{"type": "approve"}]}


def by_the_clerk(tool, **args):
    """A script in which the subagent uses the tool; its directives are escaped, so that they are the clerk's alone."""
    words = f"[[tool {tool} {json.dumps(args)}]] [[then]] reported"
    task = json.dumps({"description": words, "subagent_type": "clerk"}).replace("[", "\\u005b").replace("]", "\\u005d")
    return f"[[tool task {task}]] [[then]] delegated"


def shown(server, namespace=()):
    """What the transcript shows at a namespace: kind and result or text."""
    with httpx.Client(base_url=server.http, timeout=20, trust_env=False) as http:
        page = http.get("/threads/t/transcript", params={"namespace": "|".join(namespace)} if namespace else {}).json()
        found = [item for turn in page["turns"] for item in turn["items"]]
    return [(item["kind"], item.get("output") or item.get("text") or item.get("code")) for item in found]


def said(server):
    """What the transcript shows without its notices."""
    return [item for item in shown(server) if item[0] != "notice"]


def restarted(server, gates):
    server.kill()
    gates.forget()  # not before: whoever stands there would go on for an instant
    server.start()


def test_killed_at_the_answer_to_a_message_the_message_is_carried_out(serve, gates):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", "hello there")
            restarted(server, gates)
        async with Client(server.http) as client:
            frames = await frames_of(client, "t", run_id)
            assert (ending(frames), text_of(frames)[-11:]) == (("completed", None), "hello there")
            assert texts(await client.state("t")) == [("human", "hello there"), ("ai", "hello there")]
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_killed_before_queued_messages_have_begun_each_is_carried_out_once_and_in_order(serve, gates):
    server = serve()
    gates.hold("look first")

    async def scene():
        async with watched(server, "t") as (client, record):
            ids = [await begun(client, "t", '[[tool look {"what": "first"}]]')]
            gates.reached("look first")
            ids += [await begun(client, "t", text, multitask_strategy="enqueue") for text in ("second", "third")]
            assert set(stored_runs(server.data_root, "t").values()) == {"running", "pending"}
            restarted(server, gates)
        async with Client(server.http) as client:
            told = [await frames_of(client, "t", run_id) for run_id in ids]
            assert [text_of(frames) for frames in told] == ["saw first", "second", "third"]
            await caught_up(client, record, server=server)
            starts = [frames[0]["seq"] for frames in told]
            assert starts == sorted(starts)

    play(scene())


def test_killed_while_deltas_stream_the_run_goes_on_and_nobody_misses_one(serve, gates):
    server = serve()
    words = " ".join(f"w{number}" for number in range(60))

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", f"[[pace 0.01]]{words}")
            await record.until(lambda frame: "w15" in text_of([frame]))
            restarted(server, gates)
        cursor = record.cursor
        async with Client(server.http) as client:
            frames = await frames_of(client, "t", run_id)
            assert ending(frames) == ("completed", None)
            await caught_up(client, record, server=server)
            assert record.cursor > cursor
            assert texts(await client.state("t"))[1:] == [("ai", words)]
            closed = [frame for frame in frames if frame["params"]["data"].get("code") == "aborted"]
            assert len(closed) == 1, "the message that was cut off is closed in the log"
            await next_message_works(client, "t")

    play(scene())


def test_killed_between_insert_and_hand_over_the_event_reaches_the_client_that_comes_back(serve, gates):
    server = serve(storage="holding")
    gates.hold("inserted")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", "[[pace 0.05]]one HERE two")
            gates.reached("inserted")
            stored = stored_log(server.data_root, "t")
            assert any("HERE" in str(event.data) for event in stored if event.method == "messages")
            await record.until(lambda frame: frame["method"] == "values")
            restarted(server, gates)
        assert record.cursor < len(stored), "it was stored and not handed over"
        async with Client(server.http) as client:
            assert ending(await frames_of(client, "t", run_id)) == ("completed", None)
            await caught_up(client, record, server=server)
            assert stored_log(server.data_root, "t")[: len(stored)] == stored
            await next_message_works(client, "t")

    play(scene())


@pytest.mark.parametrize(
    ("words", "kept", "told"),
    [
        ("[[pace 0.05]]one HERE two", [("ai", "one HERE two")], [("text", "one HERE two")]),
        (
            '[[pace 0.05]]HERE [[tool look {"what": "x"}]] [[then]] done',
            [("ai", "HERE"), ("tool", "saw x"), ("ai", "done")],
            [("text", "HERE"), ("tool", "saw x"), ("text", "done")],
        ),
    ],
    ids=["an answer", "a call and its result"],
)
def test_killed_while_the_log_is_behind_the_state_what_it_missed_is_told_once(serve, gates, words, kept, told):
    server = serve(storage="holding")
    gates.hold("before the insert")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", words)
            gates.reached("before the insert")
            while texts(await client.state("t"))[1:] != kept:
                pass  # the run goes on meanwhile
            restarted(server, gates)
        assert not any(
            b"HERE" in json.dumps(frame).encode() for frame in record.frames if frame["method"] == "messages"
        )
        async with Client(server.http) as client:
            assert ending(await frames_of(client, "t", run_id)) == ("completed", None)
            await caught_up(client, record, server=server)
            assert said(server) == told
            assert texts(await client.state("t"))[1:] == kept
            await next_message_works(client, "t")

    play(scene())


@pytest.mark.parametrize(("step", "ended_before"), [("before the end", False), ("after the end", True)])
def test_killed_around_the_terminal_event_there_is_exactly_one(serve, gates, step, ended_before):
    server = serve(storage="holding")
    gates.hold(step)

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", "hello")
            gates.reached(step)
            assert (stored_runs(server.data_root, "t")[run_id] == "success") is ended_before
            restarted(server, gates)
        assert not any(map(is_root_end, record.frames))
        async with Client(server.http) as client:
            frames = await frames_of(client, "t", run_id)
            assert (ending(frames), said(server)) == (("completed", None), [("text", "hello")])
            await caught_up(client, record, server=server)
            assert texts(await client.state("t")) == [("human", "hello"), ("ai", "hello")]
            await next_message_works(client, "t")

    play(scene())


@pytest.mark.parametrize("words", ['[[tool look {"what": "pizza"}]]', by_the_clerk("look", what="pizza")])
def test_killed_in_a_repeatable_tool_the_run_goes_on_unasked(serve, gates, words):
    server = serve()
    gates.hold("look")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", words)
            gates.reached("look pizza")
            restarted(server, gates)
        async with Client(server.http) as client:
            frames = await frames_of(client, "t", run_id)
            assert ending(frames) == ("completed", None)
            assert text_of(frames).endswith("saw pizza") or text_of(frames).endswith("delegated")
            assert done(server) == ["look pizza"]
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


CHOICES = {"retry": 2, "skip": 1, "stop": 1}
"""What a person may choose after a crash, and how often the tool has run then."""


@pytest.mark.parametrize("where", ["a tool", "a tool of a subagent", "an approved tool"])
def test_killed_in_a_tool_that_must_not_run_twice_a_person_decides(serve, gates, where):
    server = serve()
    tool = "mail" if where == "an approved tool" else "post"
    gates.hold(f"after {tool}")

    def script(name):
        if where == "a tool of a subagent":
            return by_the_clerk("post", to=name)
        return f"[[tool {tool} {json.dumps({'to': name})}]] [[then]] sent"

    async def until_it_runs(client, choice):
        """A thread for each choice; all of them are killed at once."""
        run_id = await begun(client, choice, script(choice))
        if tool == "mail":
            await frames_of(client, choice, run_id)
            (asked,) = await client.waiting(choice)
            run_id = (await client.respond(choice, (asked["interruptId"], APPROVE)))["result"]["run_id"]
        gates.reached(f"after {tool} {choice}")
        return run_id

    async def decide(client, choice, run_id):
        assert ending(await frames_of(client, choice, run_id)) == ("failed", "NEEDS_ATTENTION")
        (question,) = [found for found in await client.inbox() if found["threadId"] == choice]
        assert (question["kind"], question["runId"]) == ("recovery", run_id)
        assert question["payload"]["choices"] == list(CHOICES)
        (action,) = question["payload"]["actions"]
        assert (action["tool"], bool(action["namespace"])) == (tool, where == "a tool of a subagent")
        refused = await client.respond(choice, (question["interruptId"], {"choice": "perhaps"}))
        assert (refused["error"], list(refused["fields"])) == ("invalid_decision", ["response.choice"])
        assert done(server).count(f"{tool} {choice}") == 1
        assert ending(await answered(client, choice, (question["interruptId"], {"choice": choice})))[0] == "completed"
        assert done(server).count(f"{tool} {choice}") == CHOICES[choice]
        await next_message_works(client, choice)

    async def scene():
        async with AsyncExitStack() as stack:
            watchers = {name: await stack.enter_async_context(watched(server, name)) for name in CHOICES}
            runs = {name: await until_it_runs(client, name) for name, (client, _) in watchers.items()}
            restarted(server, gates)
        async with Client(server.http) as client:
            for name, (_, record) in watchers.items():
                await decide(client, name, runs[name])
                await caught_up(client, record, server=server)
            assert await client.inbox() == []

    play(scene())


def test_killed_in_a_tool_before_it_did_anything_retry_does_it_once(serve, gates):
    server = serve()
    gates.hold("before post")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", POST)
            gates.reached("before post ada")
            restarted(server, gates)
        async with Client(server.http) as client:
            assert ending(await frames_of(client, "t", run_id)) == ("failed", "NEEDS_ATTENTION")
            (question,) = await client.inbox()
            frames = await answered(client, "t", (question["interruptId"], {"choice": "retry"}))
            assert (ending(frames), text_of(frames)) == (("completed", None), "posted")
            assert done(server) == ["post ada"]
            await caught_up(client, record, server=server)

    play(scene())


def test_killed_again_in_the_retried_tool_a_person_decides_again(serve, gates):
    server = serve()
    gates.hold("after post")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", POST)
            gates.reached("after post ada")
            restarted(server, gates)
        async with Client(server.http) as client:
            await frames_of(client, "t", run_id)
            (question,) = await client.inbox()
            gates.hold("after post")
            retried = (await client.respond("t", (question["interruptId"], {"choice": "retry"})))["result"]["run_id"]
            gates.reached("after post ada")
            restarted(server, gates)
        async with Client(server.http) as client:
            assert ending(await frames_of(client, "t", retried)) == ("failed", "NEEDS_ATTENTION")
            (question,) = await client.inbox()
            frames = await answered(client, "t", (question["interruptId"], {"choice": "skip"}))
            assert (ending(frames), done(server)) == (("completed", None), ["post ada"] * 2)
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


def test_killed_while_one_of_two_tools_has_its_result_only_the_other_is_asked_about(serve, gates):
    server = serve(storage="holding")
    gates.hold("after post slowly")

    async def scene():
        async with watched(server, "t") as (client, record):
            words = '[[tool post {"to": "quickly"}]] [[tool post {"to": "slowly"}]] [[then]] both'
            run_id = await begun(client, "t", words)
            gates.reached("after post slowly")
            gates.passes("closed")
            restarted(server, gates)
        async with Client(server.http) as client:
            await frames_of(client, "t", run_id)
            (question,) = await client.inbox()
            assert len(question["payload"]["actions"]) == 1
            frames = await answered(client, "t", (question["interruptId"], {"choice": "skip"}))
            assert (ending(frames), text_of(frames)) == (("completed", None), "both")
            assert sorted(done(server)) == ["post quickly", "post slowly"]
            await caught_up(client, record, server=server)

    play(scene())


def test_killed_in_an_open_approval_it_stands_in_the_inbox_and_can_be_answered(serve, gates):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", MAIL)
            assert ending(await frames_of(client, "t", run_id)) == ("interrupted", None)
            before = await client.inbox()
            restarted(server, gates)
        async with Client(server.http) as client:
            assert await client.inbox() == before
            assert (await client.command("t", "run.start", {"input": {"prompt": "hi"}}))["error"] == "interrupt_pending"
            assert done(server) == []
            frames = await answered(client, "t", (before[0]["interruptId"], APPROVE))
            assert (ending(frames), text_of(frames)) == (("completed", None), "mailed")
            assert done(server) == ["mail ada"]
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


def test_killed_at_the_answer_to_a_decision_the_decision_is_carried_out_once(serve, gates):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            await frames_of(client, "t", await begun(client, "t", MAIL))
            (asked,) = await client.inbox()
            gates.hold("before mail")
            run_id = (await client.respond("t", (asked["interruptId"], APPROVE)))["result"]["run_id"]
            restarted(server, gates)
        async with Client(server.http) as client:
            frames = await frames_of(client, "t", run_id)
            assert ending(frames) in (("completed", None), ("failed", "NEEDS_ATTENTION"))
            for question in await client.inbox():  # it had been announced already
                assert question["kind"] == "recovery"
                await answered(client, "t", (question["interruptId"], {"choice": "retry"}))
            assert done(server) == ["mail ada"]
            again = await client.respond("t", (asked["interruptId"], APPROVE))
            assert again["error"] == "already_decided"
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())
