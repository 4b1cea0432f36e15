"""Questions of `ask_user` over HTTP: forms, messages as answers, two at once, two clients, subagents, kill -9."""

from __future__ import annotations

import json

import httpx
from talking import frames_of, text_of, texts
from watching import (
    Client,
    answered,
    begun,
    caught_up,
    check_log,
    ending,
    next_message_works,
    play,
    watched,
)

TABLE = [
    {"name": "people", "label": "People", "type": "number", "required": True, "min": 1},
    {"name": "day", "label": "Day", "type": "date"},
    {"name": "terms", "label": "I agree", "type": "checkbox", "required": True},
]
CHOICE = {"question": "Which size?", "options": [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large"}]}
FORM = {"question": "Book a table", "fields": TABLE}


def inquiries(*questions):
    return " ".join([*(f"[[tool ask_user {json.dumps(question)}]]" for question in questions), "[[then]] finished"])


def by_the_clerks(*questions):
    """Each question is asked by a subagent of its own; its directives are escaped, so that they are the clerk's."""
    calls = []
    for question in questions:
        words = f"[[tool ask_user {json.dumps(question)}]] [[then]] reported"
        task = json.dumps({"description": words, "subagent_type": "clerk"})
        calls.append(f"[[tool task {task.replace('[', chr(92) + 'u005b').replace(']', chr(92) + 'u005d')}]]")
    return " ".join([*calls, "[[then]] delegated"])


async def asked(client, thread_id, words):
    """Start a run that asks; the ids of its questions by their words."""
    frames = await frames_of(client, thread_id, await begun(client, thread_id, words))
    assert ending(frames) == ("interrupted", None)
    return {found["payload"]["question"]: found["interruptId"] for found in await client.waiting(thread_id)}


async def results(client, thread_id):
    return [text for kind, text in texts(await client.state(thread_id)) if kind == "tool"]


def test_all_faults_of_a_form_come_at_once_and_it_is_answered_then(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            (form,) = (await asked(client, "t", inquiries(FORM))).values()
            (waiting,) = await client.waiting("t")
            assert (waiting["kind"], waiting["payload"]["fields"]) == ("input", TABLE)
            assert "- People (a number, required, at least 1)" in waiting["payload"]["text"]
            wrong = {"kind": "form", "values": {"people": 0, "day": "soon", "__proto__": 1}}
            refused = await client.respond("t", (form, wrong))
            assert (refused["error"], refused["fields"]) == (
                "invalid_decision",
                {"people": "too_small", "day": "invalid_date", "terms": "required", "__proto__": "unknown_field"},
            )
            frames = await answered(client, "t", (form, {"kind": "form", "values": {"people": 2, "terms": True}}))
            assert (ending(frames), text_of(frames)) == (("completed", None), "finished")
            (told,) = await results(client, "t")
            assert told.startswith("People: 2\nDay: (no answer)\nI agree: yes\n")
            assert '{"people": 2, "terms": true}' in told
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_a_message_answers_the_newest_question_alone_and_the_older_is_active_again(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            questions = await asked(client, "t", inquiries({"question": "Who?"}, FORM))
            newest = (await client.waiting("t"))[-1]
            older = next(name for name, found in questions.items() if found != newest["interruptId"])
            frames = await frames_of(client, "t", await begun(client, "t", "the newest, in words"))
            assert ending(frames) == ("interrupted", None)
            assert {found["interruptId"] for found in await client.waiting("t")} == {questions[older]}
            again = await client.respond("t", (newest["interruptId"], "another"))
            assert again["error"] == "already_decided"
            frames = await frames_of(client, "t", await begun(client, "t", "the older, in words"))
            assert (ending(frames), text_of(frames)) == (("completed", None), "finished")
            told = dict(zip(questions, await results(client, "t"), strict=True))
            assert told[older].endswith("the older, in words")
            assert told[newest["payload"]["question"]].endswith("the newest, in words")
            assert [kind for kind, _ in texts(await client.state("t"))].count("human") == 1
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_with_an_approval_beside_the_question_a_message_is_refused_and_changes_nothing(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            words = f'[[tool mail {{"to": "ada"}}]] {inquiries(CHOICE)}'
            frames = await frames_of(client, "t", await begun(client, "t", words))
            assert ending(frames) == ("interrupted", None)
            before = await client.waiting("t")
            refused = await client.command("t", "run.start", {"input": {"prompt": "the large one"}})
            assert (refused["error"], await client.waiting("t")) == ("interrupt_pending", before)
            by_kind = {found["kind"]: found["interruptId"] for found in before}
            reject = {"decisions": [{"type": "reject"}]}
            choice = {"kind": "option", "id": "xl"}
            refused = await client.respond("t", (by_kind["approval"], reject), (by_kind["input"], choice))
            assert refused["fields"] == {"responses.1.response.id": "not_an_option"}
            choice = {"kind": "option", "id": "l"}
            frames = await answered(client, "t", (by_kind["approval"], reject), (by_kind["input"], choice))
            assert ending(frames) == ("completed", None)
            assert "Large" in await results(client, "t")
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_a_second_answer_elsewhere_is_refused_with_who_and_when(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (one, record), Client(server.http) as two:
            (choice,) = (await asked(one, "t", inquiries(CHOICE))).values()
            frames = await answered(one, "t", (choice, {"kind": "option", "id": "s"}))
            assert ending(frames) == ("completed", None)
            late = await two.respond("t", (choice, {"kind": "option", "id": "l"}))
            assert late["error"] == "already_decided"
            assert "decided by local at 20" in late["message"]
            assert await results(two, "t") == ["Small"]
            await next_message_works(one, "t")
        check_log(server, "t", record)

    play(scene())


def test_the_questions_of_two_subagents_are_answered_in_either_order_each_once(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            questions = await asked(client, "t", by_the_clerks({"question": "Who?"}, {"question": "Where?"}))
            assert set(questions) == {"Who?", "Where?"}
            frames = await answered(client, "t", (questions["Where?"], {"kind": "text", "value": "here"}))
            assert ending(frames) == ("interrupted", None)
            assert [found["interruptId"] for found in await client.waiting("t")] == [questions["Who?"]]
            frames = await answered(client, "t", (questions["Who?"], {"kind": "text", "value": "me"}))
            assert ending(frames) == ("completed", None)
            assert await results(client, "t") == ["reported", "reported"]
            assert await client.waiting("t") == []
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_a_question_survives_kill_9_and_is_answered_by_a_message_then(serve, gates):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            questions = await asked(client, "t", inquiries(FORM))
            before = await client.inbox()
            assert [found["interruptId"] for found in before] == list(questions.values())
            server.kill()
            gates.forget()
            server.start()
        async with Client(server.http) as client:
            assert await client.inbox() == before
            refused = await client.respond("t", (before[0]["interruptId"], {"kind": "form", "values": {}}))
            assert refused["fields"] == {"people": "required", "terms": "required"}
            frames = await frames_of(client, "t", await begun(client, "t", "two of us, today"))
            assert (ending(frames), text_of(frames)) == (("completed", None), "finished")
            (told,) = await results(client, "t")
            assert told.endswith("in words:\ntwo of us, today")
            assert await client.inbox() == []
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


def test_the_transcript_and_its_export_have_the_question_and_the_answer_to_read(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            (form,) = (await asked(client, "t", inquiries(FORM))).values()
            await answered(client, "t", (form, {"kind": "form", "values": {"people": 2, "terms": True}}))
            (choice,) = (await asked(client, "t", inquiries(CHOICE))).values()
            await frames_of(client, "t", await begun(client, "t", "# in between\n```"))
        async with httpx.AsyncClient(base_url=server.http, trust_env=False) as reader:
            page = (await reader.get("/threads/t/transcript")).json()
            requests = [item for turn in page["turns"] for item in turn["items"] if item["kind"] == "request"]
            assert [(one["interruptId"], one["state"], one["by"]) for one in requests] == [
                (form, "decided", "local"),
                (choice, "decided", "local"),
            ]
            assert requests[0]["payload"]["text"].startswith("Book a table\n- People")
            assert requests[0]["answer"] == {"kind": "form", "values": {"people": 2, "terms": True}}
            assert requests[1]["answer"] == {"kind": "message", "value": "# in between\n```"}
            exported = (await reader.get("/threads/t/export?format=md")).text
            assert "**Asked: input** (decided by local)\n" in exported
            assert "question:\n\n> Book a table\n> - People (a number, required, at least 1)\n" in exported
            assert "answer:\n\n````\nPeople: 2\nDay: (no answer)\nI agree: yes\n\n```json\n" in exported
            assert "> 1. Small\n> 2. Large\n" in exported
            assert "answer:\n\n````\n# in between\n```\n````\n" in exported
        check_log(server, "t", record)

    play(scene())
