"""Approvals over HTTP: several at once, two clients, any order, mixed decisions, wrong answers, a restart between."""

from __future__ import annotations

import json

import pytest
from talking import frames_of, text_of, texts
from watching import (
    Client,
    Record,
    answered,
    begun,
    caught_up,
    check_log,
    connected,
    done,
    ending,
    next_message_works,
    play,
    stored_log,
    watched,
)

APPROVE = {"decisions": [{"type": "approve"}]}
REJECT = {"decisions": [{"type": "reject", "message": "not now"}]}
RESPOND = {"decisions": [{"type": "respond", "message": "I wrote to her myself"}]}


def edit(**args):
    return {"decisions": [{"type": "edit", "edited_action": {"name": "mail", "args": args}}]}


def mails(*names):
    calls = " ".join(f"[[tool mail {json.dumps({'to': name})}]]" for name in names)
    return f"{calls} [[then]] finished"


async def asked(client, thread_id, *names):
    """Start a run that asks for these mails, and the ids of its questions by name."""
    frames = await frames_of(client, thread_id, await begun(client, thread_id, mails(*names)))
    assert ending(frames) == ("interrupted", None)
    waiting = await client.waiting(thread_id)
    return {found["payload"]["action_requests"][0]["args"]["to"]: found["interruptId"] for found in waiting}


@pytest.mark.parametrize("restart", [False, True])
def test_four_calls_are_decided_by_two_clients_in_any_order_and_each_as_it_was_said(serve, restart):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            questions = await asked(client, "t", "ada", "bob", "cyd", "dee")
            assert list(questions) == ["ada", "bob", "cyd", "dee"]
        if restart:
            server.restart()
        async with Client(server.http) as one, Client(server.http) as two, connected(one, record):
            assert {found["interruptId"] for found in await two.inbox()} == set(questions.values())
            first = await answered(two, "t", (questions["dee"], RESPOND))
            assert ending(first) == ("interrupted", None)
            assert done(server) == []
            if restart:
                server.restart()
        async with Client(server.http) as one, Client(server.http) as two, connected(one, record):
            await answered(one, "t", (questions["bob"], edit(to="bob@home")))
            assert done(server) == ["mail bob@home"]
            last = await answered(two, "t", (questions["cyd"], REJECT), (questions["ada"], APPROVE))
            assert (ending(last), text_of(last)) == (("completed", None), "finished")
            assert sorted(done(server)) == ["mail ada", "mail bob@home"]
            results = [text for kind, text in texts(await one.state("t")) if kind == "tool"]
            assert len(results) == 4
            told = dict(zip(questions, results, strict=True))
            assert "not now" in told["cyd"]
            assert told["dee"] == "I wrote to her myself"
            assert "bob@home" in told["bob"]
            assert told["ada"] == "mail sent to ada"
            assert await one.inbox() == []
            await next_message_works(one, "t")
        async with Client(server.http) as client:
            await caught_up(client, record, server=server)

    play(scene())


def test_of_two_clients_that_decide_at_once_one_wins_and_the_other_is_told_who(serve):
    import asyncio

    server = serve()

    async def scene():
        async with watched(server, "t") as (one, record), Client(server.http) as two:
            questions = await asked(one, "t", "ada")
            decisions = [client.respond("t", (questions["ada"], APPROVE)) for client in (one, two) * 5]
            replies = await asyncio.gather(*decisions)
            won = [reply for reply in replies if reply["type"] == "success"]
            assert len(won) == 1
            lost = [reply for reply in replies if reply["type"] == "error"]
            assert {reply["error"] for reply in lost} == {"already_decided"}
            assert all("local" in reply["message"] for reply in lost)
            await frames_of(one, "t", won[0]["result"]["run_id"])
            assert done(server) == ["mail ada"]
            assert (await two.respond("t", ("nobody", APPROVE)))["error"] == "no_such_interrupt"
            await next_message_works(one, "t")
        check_log(server, "t", record)

    play(scene())


WRONG = {
    "response.decisions": ({"decisions": []}, {"decisions": [{"type": "approve"}] * 2}, "yes", None, 3),
    "response.decisions.0.type": ({"type": "maybe"}, {"decisions": [{}]}, {"decisions": [{"type": "retry"}]}),
    "response.decisions.0.message": ({"type": "respond"}, {"type": "reject", "message": 3}),
    "response.decisions.0.edited_action": ({"type": "edit"},),
    "response.decisions.0.edited_action.name": ({"type": "edit", "edited_action": {"name": "post", "args": {}}},),
    "response.decisions.0.edited_action.args": ({"type": "edit", "edited_action": {"name": "mail", "args": 1}}, edit()),
    "response.decisions.0.edited_action.args.to": (edit(to=3),),
}


def test_a_wrong_answer_is_refused_with_its_field_and_the_question_stays_open(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            questions = await asked(client, "t", "ada", "bob")
            inbox, log = await client.inbox(), stored_log(server.data_root, "t")
            for field, answers in WRONG.items():
                for answer in answers:
                    refused = await client.respond("t", (questions["ada"], answer))
                    assert (refused["error"], list(refused["fields"])) == ("invalid_decision", [field]), answer
            half = await client.respond("t", (questions["ada"], APPROVE), (questions["bob"], {"decisions": []}))
            assert list(half["fields"]) == ["responses.1.response.decisions"]
            assert (await client.inbox(), stored_log(server.data_root, "t")) == (inbox, log)
            frames = await answered(client, "t", (questions["ada"], APPROVE), (questions["bob"], APPROVE))
            assert ending(frames) == ("completed", None)
            assert sorted(done(server)) == ["mail ada", "mail bob"]
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_a_message_never_makes_an_approval_disappear(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record), Client(server.http) as other:
            questions = await asked(client, "t", "ada")
            inbox = await client.inbox()
            for strategy in ("interrupt", "enqueue", "reject"):
                params = {"input": {"prompt": "never mind"}, "multitask_strategy": strategy}
                refused = await other.command("t", "run.start", params)
                assert (refused["error"], refused["fields"]) == (
                    "interrupt_pending",
                    {"interrupt_ids": questions["ada"]},
                )
            assert await client.inbox() == inbox
            await answered(client, "t", (questions["ada"], APPROVE))
            assert done(server) == ["mail ada"]
            assert [kind for kind, _ in texts(await client.state("t"))] == ["human", "ai", "tool", "ai"]
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_a_free_call_beside_a_gated_one_runs_once_however_long_the_person_takes(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            words = '[[tool post {"to": "free"}]] [[tool mail {"to": "ada"}]] [[then]] both'
            await frames_of(client, "t", await begun(client, "t", words))
            (question,) = await client.inbox()
            assert done(server) == ["post free"]
        server.restart()
        async with Client(server.http) as client:
            frames = await answered(client, "t", (question["interruptId"], APPROVE))
            assert text_of(frames) == "both"
            assert done(server) == ["post free", "mail ada"]
            await caught_up(client, record, server=server)

    play(scene())


def test_an_approval_of_a_subagents_call_is_answered_like_any_other(serve):
    from test_kill import by_the_clerk

    server = serve()

    async def scene():
        async with Client(server.http) as client:
            for thread_id, answer, sent in (
                ("a", APPROVE, 1),
                ("e", edit(to="eve"), 1),
                ("r", REJECT, 0),
                ("s", RESPOND, 0),
            ):
                record = Record(thread_id)
                before = len(done(server))
                async with connected(client, record):
                    await frames_of(
                        client, thread_id, await begun(client, thread_id, by_the_clerk("mail", to=thread_id))
                    )
                    (question,) = await client.inbox()
                    assert question["namespace"] or question["payload"]["action_requests"][0]["name"] == "mail"
                    frames = await answered(client, thread_id, (question["interruptId"], answer))
                    assert ending(frames) == ("completed", None)
                    assert text_of(frames).endswith("delegated")
                assert len(done(server)) - before == sent
                await caught_up(client, record, server=server)
            assert done(server) == ["mail a", "mail eve"]

    play(scene())


def test_a_message_that_was_queued_before_the_question_waits_for_its_answer(serve, gates):
    server = serve()
    gates.hold("look")

    async def scene():
        async with watched(server, "t") as (client, record):
            words = '[[tool look {"what": "first"}]] [[then]] [[tool mail {"to": "ada"}]] [[then]] mailed'
            run_id = await begun(client, "t", words)
            gates.reached("look first")
            queued = [await begun(client, "t", text, multitask_strategy="enqueue") for text in ("second", "third")]
            gates.release("look")
            assert ending(await frames_of(client, "t", run_id)) == ("interrupted", None)
            server.restart()
        async with Client(server.http) as client:
            (question,) = await client.inbox()
            assert (await client.command("t", "run.stop", {"run_id": queued[1]}))["type"] == "success"
            assert ending(await frames_of(client, "t", queued[1])) == ("completed", "CANCELLED")
            frames = await answered(client, "t", (question["interruptId"], APPROVE))
            assert (ending(frames), text_of(frames)) == (("completed", None), "mailed")
            second = await frames_of(client, "t", queued[0])
            assert text_of(second) == "second"
            assert second[0]["seq"] > frames[-1]["seq"]
            assert done(server) == ["look first", "mail ada"]
            await caught_up(client, record, server=server)

    play(scene())
