"""Stop means stopped: processes of processes, tools of subagents; what had finished stays, the next message works."""

from __future__ import annotations

import os
import select
import time

from talking import frames_of, texts
from test_kill import by_the_clerk
from watching import Client, begun, caught_up, check_log, done, ending, next_message_works, play, watched

GONE_SECONDS = 3.0


def gone_within(pids, seconds):
    """Whether all these processes end before the time is over; each is waited for by its descriptor."""
    deadline = time.monotonic() + seconds
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
        finally:
            os.close(descriptor)
    return True


def test_a_stop_ends_child_and_grandchild_within_three_seconds(serve, gates):
    server = serve()
    gates.hold("spawn")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", '[[tool spawn {"name": "family"}]] [[then]] never')
            pids = [int(word) for word in gates.reached("spawn family").split()[2:]]
            assert len(pids) == 2
            assert not gone_within(pids, 0)
            asked_at = time.monotonic()
            stopped = await client.command("t", "run.stop", {"run_id": run_id})
            assert stopped["type"] == "success", stopped
            assert gone_within(pids, GONE_SECONDS - (time.monotonic() - asked_at))
            assert time.monotonic() - asked_at < GONE_SECONDS
            assert ending(await frames_of(client, "t", run_id)) == ("completed", "CANCELLED")
            gates.forget()
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_a_killed_server_leaves_a_person_the_decision_about_a_process_that_it_started(serve, gates):
    server = serve()
    gates.hold("spawn")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", '[[tool spawn {"name": "family"}]] [[then]] never')
            pids = [int(word) for word in gates.reached("spawn family").split()[2:]]
            server.kill()
            gates.forget()
            server.start()
            for pid in pids:
                if not gone_within([pid], 0):
                    os.kill(pid, 9)
        async with Client(server.http) as client:
            assert ending(await frames_of(client, "t", run_id)) == ("failed", "NEEDS_ATTENTION")
            (question,) = await client.inbox()
            assert question["payload"]["actions"][0]["tool"] == "spawn"
            await caught_up(client, record, server=server)

    play(scene())


def test_a_stop_in_a_tool_keeps_the_results_of_tools_that_had_finished(serve, gates):
    server = serve(storage="holding")
    gates.hold("slow")

    async def scene():
        async with watched(server, "t") as (client, record):
            words = 'I begin. [[tool post {"to": "ada"}]] [[tool slow {"name": "paint"}]] [[then]] never'
            run_id = await begun(client, "t", words)
            gates.reached("slow paint")
            gates.passes("closed")
            assert (await client.command("t", "run.stop", {"run_id": run_id}))["type"] == "success"
            frames = await frames_of(client, "t", run_id)
            assert ending(frames) == ("completed", "CANCELLED")
            told = texts(await client.state("t"))
            unknown = "Stopped by the user while it was running. Whether it took effect is not known."
            assert told[1:] == [("ai", "I begin."), ("tool", "post sent to ada"), ("tool", unknown)]
            assert done(server) == ["post ada"]
            gates.forget()
            assert await client.inbox() == []
            await next_message_works(client, "t")
        check_log(server, "t", record)
        server.kill()
        server.start()
        async with Client(server.http) as client:
            await next_message_works(client, "t")
            assert done(server) == ["post ada"], "the stopped turn was not gone on with"
            assert await client.inbox() == []
            await caught_up(client, record, server=server)

    play(scene())


def test_a_stop_in_a_tool_of_a_subagent_reaches_it_and_the_next_message_works(serve, gates):
    server = serve()
    gates.hold("slow", "spawn")

    async def scene():
        async with watched(server, "t") as (client, record):
            for tool, name in (("slow", "paint"), ("spawn", "family")):
                run_id = await begun(client, "t", by_the_clerk(tool, name=name))
                pids = [int(word) for word in gates.reached(f"{tool} {name}").split()[2:]]
                assert (await client.command("t", "run.stop", {"run_id": run_id}))["type"] == "success"
                assert gone_within(pids, 0)
                frames = await frames_of(client, "t", run_id)
                assert ending(frames) == ("completed", "CANCELLED")
                tools = [frame["params"]["data"] for frame in frames if frame["method"] == "tools"]
                started = {data["tool_call_id"] for data in tools if data["event"] == "tool-started"}
                closed = [data["tool_call_id"] for data in tools if data["event"] in ("tool-finished", "tool-error")]
                assert sorted(closed) == sorted(started)
                assert len(started) == 2, "the task and the clerk's tool"
                await next_message_works(client, "t")
            assert await client.inbox() == []
        check_log(server, "t", record)

    play(scene())


def test_a_late_stop_does_not_end_the_run_that_came_after(serve, gates):
    server = serve()
    gates.hold("slow")

    async def scene():
        async with watched(server, "t") as (client, record):
            first = await begun(client, "t", '[[tool slow {"name": "one"}]] [[then]] never')
            gates.reached("slow one")
            second = await begun(client, "t", '[[tool slow {"name": "two"}]] [[then]] second done')
            gates.reached("slow two")
            await client.command("t", "run.stop", {"run_id": first})
            gates.release("slow two")
            assert ending(await frames_of(client, "t", first)) == ("interrupted", "SUPERSEDED")
            assert ending(await frames_of(client, "t", second)) == ("completed", None)
        check_log(server, "t", record)

    play(scene())


def test_a_tool_that_fails_is_told_to_the_model_and_the_run_goes_on(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            frames = await frames_of(
                client, "t", await begun(client, "t", '[[tool boom {"why": "x"}]] [[then]] went on')
            )
            assert ending(frames) == ("completed", None)
            assert [text for kind, text in texts(await client.state("t")) if kind == "tool"] != []
            await next_message_works(client, "t")
        check_log(server, "t", record)

    play(scene())


def test_of_twenty_messages_that_replace_each_other_at_once_none_is_lost_to_the_model_or_the_person(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, record):
            await frames_of(client, "t", await begun(client, "t", "before"))
            said = [f"[[pace 0.2]] one two m{number}" for number in range(20)]
            for text in said[:-1]:
                await begun(client, "t", text)
            last = await begun(client, "t", "the last")
            assert ending(await frames_of(client, "t", last)) == ("completed", None)
            heard = [text for kind, text in texts(await client.state("t")) if kind == "human"]
            assert heard == ["before", *said[:-1], "the last"]
            check_log(server, "t", record)

    play(scene())
