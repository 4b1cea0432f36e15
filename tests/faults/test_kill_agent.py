"""Killed while the agent writes a file, has code run that delegates, or a specialist waits for an answer."""

from __future__ import annotations

import httpx
import pytest
from scripting import delegate, fan_out, one_by_one, steps, use
from talking import frames_of, texts
from test_kill import APPROVE, restarted, shown
from watching import Client, answered, begun, caught_up, done, ending, next_message_works, play, watched

LONG = "a line that is written once\n" * 2000


def kept_files(server):
    """Path to (version, content) of the thread's files."""
    with httpx.Client(base_url=server.http, timeout=20, trust_env=False) as http:
        rows = http.get("/threads/t/artifacts").json()["artifacts"]
        return {row["path"]: (row["version"], http.get(f"/threads/t/artifacts{row['path']}").text) for row in rows}


async def decided(client, run_id, choice, *tools):
    """The frames of the run that goes on after its recovery, which is about calls of exactly these tools."""
    assert ending(await frames_of(client, "t", run_id)) == ("failed", "NEEDS_ATTENTION")
    (question,) = await client.waiting("t")
    assert question["kind"] == "recovery"
    assert sorted(action["tool"] for action in question["payload"]["actions"]) == sorted(tools)
    return await answered(client, "t", (question["interruptId"], {"choice": choice}))


async def results(client):
    return [text for kind, text in texts(await client.state("t")) if kind == "tool"]


@pytest.mark.parametrize(
    ("step", "who", "choice", "there"),
    [
        ("before the row", "the agent", "retry", True),
        ("before the row", "a subagent", "skip", False),
        ("after the row", "a subagent", "retry", True),
        ("after the row", "the agent", "skip", True),
    ],
)
def test_killed_while_the_agent_writes_a_file_it_is_there_whole_and_once_or_not_at_all(
    serve, gates, step, who, choice, there
):
    server = serve(storage="holding")
    gates.hold(step)
    write = use("write_file", file_path="/long.txt", content=LONG)
    words = steps(write, "written") if who == "the agent" else steps(delegate("clerk", write, "reported"), "delegated")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", words)
            gates.reached(step)
            restarted(server, gates)
        assert kept_files(server) == ({"/long.txt": (1, LONG)} if step == "after the row" else {})
        async with Client(server.http) as client:
            assert ending(await decided(client, run_id, choice, "write_file")) == ("completed", None)
            assert kept_files(server) == ({"/long.txt": (1, LONG)} if there else {})
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


@pytest.mark.parametrize(("step", "choice"), [("before the row", "retry"), ("after the row", "skip")])
def test_killed_while_a_file_is_changed_the_change_is_made_once(serve, gates, step, choice):
    server = serve(storage="holding")
    write = use("write_file", file_path="/list.txt", content="one\n")
    edit = use("edit_file", file_path="/list.txt", old_string="one", new_string="one, and one more")

    async def scene():
        async with watched(server, "t") as (client, record):
            await frames_of(client, "t", await begun(client, "t", steps(write, "written")))
            gates.hold(step)
            run_id = await begun(client, "t", steps(edit, "changed"))
            gates.reached(step)
            restarted(server, gates)
        async with Client(server.http) as client:
            assert ending(await decided(client, run_id, choice, "edit_file")) == ("completed", None)
            assert kept_files(server) == {"/list.txt": (2, "one, and one more\n")}
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


PEOPLE = ("ada", "bob", "cid")
RETRIED = ["ada is done | bob is done | cid is done"]
SKIPPED = [
    (
        "This call was under way, and no result of it was kept: whether it happened is not known. "
        "The person chose not to run it again."
    )
]


@pytest.mark.parametrize(
    ("tool", "choice", "asked", "did", "told"),
    [
        ("post", "skip", ("eval", "post"), ["ada", "bob"], SKIPPED),
        ("post", "retry", ("eval", "post"), ["ada", "bob", "bob", "cid"], RETRIED),
        ("look", "retry", ("eval",), ["ada", "bob", "cid"], RETRIED),
    ],
)
def test_killed_in_a_tool_of_a_specialist_that_code_called_only_what_a_person_repeats_is_done_again(
    serve, gates, tool, choice, asked, did, told
):
    """The first specialist has reported, the second is in its tool, the third has not begun."""
    server = serve()
    argument, held = {"post": ("to", "after post bob"), "look": ("what", "look bob")}[tool]
    works = [steps(use(tool, **{argument: name}), f"{name} is done") for name in PEOPLE]
    gates.hold(held)

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", steps(use("eval", code=one_by_one("clerk", *works)), "all done"))
            gates.reached(held)
            restarted(server, gates)
        async with Client(server.http) as client:
            assert ending(await decided(client, run_id, choice, *asked)) == ("completed", None)
            assert done(server) == [f"{tool} {name}" for name in did]
            assert await results(client) == told
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


@pytest.mark.parametrize(("choice", "times"), [("skip", 1), ("retry", 2)])
def test_killed_while_several_specialists_of_an_eval_are_in_their_tools_all_are_decided_about_at_once(
    serve, gates, choice, times
):
    server = serve()
    works = [steps(use("post", to=name), f"{name} is done") for name in PEOPLE]
    gates.hold("after post")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", steps(use("eval", code=fan_out("clerk", *works)), "all done"))
            gates.reached("after post", times=3)
            restarted(server, gates)
        async with Client(server.http) as client:
            frames = await decided(client, run_id, choice, "eval", "post", "post", "post")
            assert ending(frames) == ("completed", None)
            assert sorted(done(server)) == sorted([f"post {name}" for name in PEOPLE] * times)
            assert await results(client) == (RETRIED if choice == "retry" else SKIPPED)
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


@pytest.mark.parametrize("called_by", ["the agent", "code"])
def test_killed_while_a_specialist_waits_for_an_answer_the_question_stands_and_is_answered(serve, gates, called_by):
    server = serve()
    work = steps(use("post", to="ada"), use("ask_user", question="Which size?"), use("post", to="bob"), "reported")
    if called_by == "the agent":
        words = steps(delegate("clerk", work), "finished")
    else:
        words = steps(use("eval", code=fan_out("clerk", work)), "finished")

    async def scene():
        async with watched(server, "t") as (client, record):
            assert ending(await frames_of(client, "t", await begun(client, "t", words))) == ("interrupted", None)
            before = await client.inbox()
            restarted(server, gates)
        async with Client(server.http) as client:
            assert await client.inbox() == before
            assert [(one["kind"], one["payload"]["question"]) for one in before] == [("input", "Which size?")]
            frames = await answered(client, "t", (before[0]["interruptId"], {"kind": "text", "value": "large"}))
            assert ending(frames) == ("completed", None)
            assert done(server) == ["post ada", "post bob"]
            assert await results(client) == ["reported"]
            inside = shown(server, before[0]["namespace"])
            assert ("tool", "large") in inside
            assert [text for kind, text in inside if kind == "text"] == ["reported"]
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


def test_killed_with_approvals_open_in_two_specialists_of_an_eval_both_stand_and_each_is_carried_out_once(serve, gates):
    server = serve()
    works = [steps(use("mail", to=name), f"{name} has mail") for name in ("ada", "bob")]

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", steps(use("eval", code=fan_out("clerk", *works)), "finished"))
            assert ending(await frames_of(client, "t", run_id)) == ("interrupted", None)
            before = await client.inbox()
            restarted(server, gates)
        async with Client(server.http) as client:
            assert await client.inbox() == before
            while open_ones := await client.waiting("t"):
                frames = await answered(client, "t", (open_ones[0]["interruptId"], APPROVE))
            assert ending(frames) == ("completed", None)
            assert sorted(done(server)) == ["mail ada", "mail bob"]
            assert await results(client) == ["ada has mail | bob has mail"]
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())


@pytest.mark.parametrize(("choice", "mails"), [("skip", 1), ("retry", 2)])
def test_killed_in_the_approved_tool_of_a_specialist_of_an_eval_what_had_reported_is_not_done_again(
    serve, gates, choice, mails
):
    server = serve()
    works = [steps(use("post", to="ada"), "ada is done"), steps(use("mail", to="bob"), "bob has mail")]

    async def scene():
        async with watched(server, "t") as (client, record):
            words = steps(use("eval", code=one_by_one("clerk", *works)), "finished")
            await frames_of(client, "t", await begun(client, "t", words))
            (asked,) = await client.waiting("t")
            gates.hold("after mail")
            run_id = (await client.respond("t", (asked["interruptId"], APPROVE)))["result"]["run_id"]
            gates.reached("after mail")
            restarted(server, gates)
        async with Client(server.http) as client:
            assert ending(await decided(client, run_id, choice, "eval", "mail")) == ("completed", None)
            assert done(server) == ["post ada", *["mail bob"] * mails]
            assert await results(client) == (["ada is done | bob has mail"] if choice == "retry" else SKIPPED)
            assert (await client.respond("t", (asked["interruptId"], APPROVE)))["error"] == "already_decided"
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())
