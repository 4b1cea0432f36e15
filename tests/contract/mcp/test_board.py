"""The board on a scripted client: order, states, generations, retiring (spec/04 §8 to 10, spec/10 J 113 to 121)."""

import asyncio

import pytest
from mcp_kit import ScriptedClient, ScriptedConnection, Secrets, Settings, Source, Watch, boarded

from pizzabot.host.mcp.slots import Slots
from pizzabot_hookspecs import Conflict, Unavailable
from pizzabot_hookspecs.mcp_servers import McpServerDefinition
from pizzabot_hookspecs.skill_sources import Origin


def defined(server_id, origin=Origin.USER, **more):
    return McpServerDefinition(id=server_id, entry={"url": "http://127.0.0.1:1/mcp", **more}, origin=origin)


def test_at_most_three_servers_are_connected_at_once():
    async def main():
        client = ScriptedClient()
        three, go = asyncio.Event(), asyncio.Event()

        async def gate(_):
            if client.at_once == 3:
                three.set()
            await go.wait()

        client.gate = gate
        servers = [f"s{number}" for number in range(8)]
        async with boarded(client, Source(*map(defined, servers)), slots=Slots(3, patience=60)) as board:
            watch = Watch(board)
            await three.wait()
            assert len(client.asked) == 3
            assert {state.status.value for state in board.states().values()} == {"loading"}
            go.set()
            for server_id in servers:
                await watch.until(server_id, "connected")
            assert client.most_at_once == 3

    asyncio.run(main())


def test_silent_servers_give_their_places_away():
    async def main():
        async def gate(endpoint):
            if endpoint.id.startswith("dead"):
                await asyncio.Event().wait()

        client = ScriptedClient()
        client.gate = gate
        source = Source(*(defined(f"dead{number}") for number in range(5)), defined("well"))
        async with boarded(client, source, slots=Slots(3, patience=0.01)) as board:
            await Watch(board).until("well", "connected")
            assert board.states()["dead0"].status == "loading"

    asyncio.run(main())


def test_a_failure_is_tried_once_more_and_then_told_while_others_go_on():
    async def main():
        def behave(endpoint):
            if endpoint.id == "ill":
                raise Unavailable("mcp_failed", "no luck with hunter2", fields={"stderr": "one\ntoken hunter2"})
            return ScriptedConnection(endpoint.id)

        client = ScriptedClient(behave)
        async with boarded(client, Source(defined("ill"), defined("well"))) as board:
            watch = Watch(board)
            state = await watch.until("ill", "error")
            assert watch.seen["ill"] == ["loading", "retrying", "error"]
            assert state.detail == "no luck with <redacted>"
            assert board.health("ill").stderr == ["one", "token <redacted>"]
            assert [endpoint.id for endpoint in client.asked].count("ill") == 2
            await watch.until("well", "connected")
            assert watch.seen["well"] == ["loading", "connected"]

    asyncio.run(main())


@pytest.mark.parametrize("code", ["mcp_auth_needed", "mcp_too_many_tools"])
def test_what_does_not_mend_itself_is_tried_once(code):
    async def main():
        def behave(_):
            raise Unavailable(code, "no")

        client = ScriptedClient(behave)
        async with boarded(client, Source(defined("ill"))) as board:
            watch = Watch(board)
            await watch.until("ill", "error")
            assert len(client.asked) == 1
            assert watch.seen["ill"] == ["loading", "error"]

    asyncio.run(main())


def test_the_deadline_of_an_attempt_is_the_boards():
    async def main():
        async def gate(_):
            await asyncio.Event().wait()

        client = ScriptedClient()
        client.gate = gate
        async with boarded(client, Source(defined("silent")), connect_seconds=0.05) as board:
            state = await Watch(board).until("silent", "error")
            assert "0.05 s ([mcp] connect_seconds)" in state.detail
            assert len(client.asked) == 2

    asyncio.run(main())


def test_disabled_and_faulty_entries_are_listed_and_never_connected():
    async def main():
        client = ScriptedClient()
        faulty = McpServerDefinition(id="faulty", entry={}, origin=Origin.USER, fault="its entry has to be an object")
        source = Source(defined("off", enabled=False), faulty, defined("web", type="websocket"), defined("a b"))
        async with boarded(client, source) as board:
            states = board.states()
            assert states["off"].status == "disabled"
            assert states["faulty"].detail == "its entry has to be an object"
            assert "WebSocket is not supported" in states["web"].detail
            assert states["a b"].status == "error"
            assert {problem["id"] for problem in board.merged.problems} == {"faulty", "web", "a b"}
            assert client.asked == []

    asyncio.run(main())


def test_an_unset_reference_is_an_error_that_names_it_and_a_set_one_is_resolved():
    async def main():
        client = ScriptedClient()
        headers = {"Authorization": "Bearer ${TOKEN}"}
        source = Source(defined("well", headers=headers), defined("unset", headers={"X": "${NOT_THERE}"}))
        async with boarded(client, source, secrets=Secrets(TOKEN="hunter2")) as board:
            watch = Watch(board)
            assert "${NOT_THERE} is not set" in (await watch.until("unset", "error")).detail
            await watch.until("well", "connected")
            assert client.asked[0].headers == {"Authorization": "Bearer hunter2"}

    asyncio.run(main())


def test_a_crash_takes_the_tools_away_at_once_and_the_server_comes_back():
    async def main():
        client = ScriptedClient(lambda endpoint: ScriptedConnection(endpoint.id, stderr=["hunter2"] * 80))
        async with boarded(client, Source(defined("s"), defined("other"))) as board:
            watch = Watch(board)
            await watch.until("s", "connected")
            await watch.until("other", "connected")
            other = board.states()["other"]
            first = client.of("s")[0]
            first.end("it ended with hunter2")
            state = await watch.until("s", "crashed")
            assert (state.detail, dict(state.tools)) == ("it ended with <redacted>", {})
            assert board.health("s").crashed_at == 1_000.0
            assert board.health("s").stderr == ["<redacted>"] * 50
            await first.gone.wait()
            await watch.until("s", "connected")
            assert board.health("s").crashed_at is None
            assert len(client.of("s")) == 2
            assert board.states()["other"] is other

    asyncio.run(main())


def test_a_late_end_of_a_retired_session_does_nothing():
    async def main():
        ended = asyncio.Event()
        client, source = ScriptedClient(), Source(defined("s"))
        async with boarded(client, source, runs_ended=ended.wait) as board:
            watch = Watch(board)
            await watch.until("s", "connected")
            source.definitions = [defined("s", hide=["x"])]
            await board.reload()
            await watch.until("s", "connected")
            old, new = client.of("s")
            old.end("late")
            ended.set()
            await old.gone.wait()
            assert board.states()["s"].status == "connected"
            assert new.close_calls == 0

    asyncio.run(main())


def test_a_replaced_session_is_closed_when_the_runs_of_then_have_ended_and_not_before():
    async def main():
        ended = asyncio.Event()
        client, source = ScriptedClient(), Source(defined("s"))
        async with boarded(client, source, runs_ended=ended.wait) as board:
            watch = Watch(board)
            await watch.until("s", "connected")
            source.definitions = []
            await board.reload()
            assert board.states() == {}
            (old,) = client.of("s")
            assert old.close_calls == 0
            ended.set()
            await old.gone.wait()
            assert old.close_calls == 1

    asyncio.run(main())


def test_closing_the_board_closes_every_session_those_that_are_kept_too():
    async def main():
        client, source = ScriptedClient(), Source(defined("kept"), defined("s"))
        async with boarded(client, source) as board:
            watch = Watch(board)
            await watch.until("kept", "connected")
            await watch.until("s", "connected")
            source.definitions = [defined("s")]
            await board.reload()
        assert [made.close_calls for made in client.connections] == [1, 1]

    asyncio.run(main())


def test_a_reload_leaves_servers_alone_whose_entry_is_the_same():
    async def main():
        client, source = ScriptedClient(), Source(defined("same"), defined("changed"), defined("gone"))
        async with boarded(client, source) as board:
            watch = Watch(board)
            for server_id in ("same", "changed", "gone"):
                await watch.until(server_id, "connected")
            same = board.states()["same"]
            source.definitions = [defined("same"), defined("changed", hide=["x"]), defined("new")]
            source.change()
            await watch.until("new", "connected")
            await watch.until("changed", "connected")
            assert board.states()["same"] is same
            assert "gone" not in board.states()
            assert len(client.of("same")) == 1

    asyncio.run(main())


def test_a_source_that_cannot_be_read_keeps_what_it_had_and_says_why():
    async def main():
        client, source, other = ScriptedClient(), Source(defined("s")), Source(defined("t"))
        async with boarded(client, source, other) as board:
            watch = Watch(board)
            await watch.until("s", "connected")
            source.error = Unavailable("mcp_file_unreadable", "line 3: hunter2")
            other.definitions = []
            await board.reload()
            assert list(board.states()) == ["s"]
            assert board.states()["s"].status == "connected"
            (problem,) = board.merged.problems
            assert problem["reason"] == "line 3: <redacted>; what it had before is used"

    asyncio.run(main())


def test_an_entry_of_the_persons_own_hides_a_plugins():
    async def main():
        client = ScriptedClient()
        plugins = Source(defined("s", Origin.PLUGIN, headers={"X": "plugin"}))
        own = Source(defined("s", headers={"X": "own"}))
        async with boarded(client, plugins, own) as board:
            await Watch(board).until("s", "connected")
            assert client.asked[0].headers == {"X": "own"}
            own.definitions = []
            await board.reload()
            await Watch(board).until("s", "connected")
            assert client.asked[1].headers == {"X": "plugin"}

    asyncio.run(main())


def test_only_a_server_in_error_or_crashed_is_connected_anew():
    async def main():
        well = False

        def behave(endpoint):
            if endpoint.id == "ill" and not well:
                raise Unavailable("mcp_failed", "ill")
            return ScriptedConnection(endpoint.id)

        client = ScriptedClient(behave)
        async with boarded(client, Source(defined("ill"), defined("well"))) as board:
            watch = Watch(board)
            await watch.until("well", "connected")
            await watch.until("ill", "error")
            for server_id in ("well", "nobody"):
                with pytest.raises(Conflict) as refused:
                    await board.reconnect(server_id)
                assert refused.value.code == "mcp_not_reconnectable"
            await board.reconnect("ill")
            assert board.states()["ill"].status == "error"
            well = True
            before = board.states()["well"]
            await board.reconnect("ill")
            assert board.states()["ill"].status == "connected"
            assert board.states()["well"] is before

    asyncio.run(main())


def test_a_server_that_does_not_answer_a_ping_has_crashed(monkeypatch):
    async def main():
        monkeypatch.setattr("pizzabot.host.mcp.supervisor.PING_ANSWER_SECONDS", 0.02)
        client = ScriptedClient()
        async with boarded(client, Source(defined("s")), ping_seconds=0.02) as board:
            watch = Watch(board)
            await watch.until("s", "connected")
            client.of("s")[0].deaf = True
            assert (await watch.until("s", "crashed")).detail == "it does not answer any more"
            assert client.of("s")[0].pings

    asyncio.run(main())


def test_a_wish_beats_the_entry_and_is_remembered():
    async def main():
        client, source, storage = ScriptedClient(), Source(defined("s"), defined("off", enabled=False)), Settings()
        async with boarded(client, source, storage=storage) as board:
            await Watch(board).until("s", "connected")
            await board.enablement.set("user", "s", False)
            await board.enablement.set("user", "off", True)
            await board.reload()
            assert board.states()["s"].status == "disabled"
            await Watch(board).until("off", "connected")
        async with boarded(client, source, storage=storage) as board:
            assert board.states()["s"].status == "disabled"
            await Watch(board).until("off", "connected")

    asyncio.run(main())


def test_the_status_counts_what_is_loaded_and_leaves_disabled_ones_out():
    async def main():
        client = ScriptedClient()
        async with boarded(client, Source(defined("s"), defined("off", enabled=False))) as board:
            await Watch(board).until("s", "connected")
            assert board.status() == {
                "available": True,
                "loaded": 1,
                "total": 1,
                "disabled": 1,
                "servers": [
                    {"name": "off", "status": "disabled", "toolCount": 0},
                    {"name": "s", "status": "loaded", "toolCount": 0},
                ],
            }

    asyncio.run(main())


def test_servers_beyond_the_limit_are_told_and_not_connected():
    async def main():
        client = ScriptedClient()
        source = Source(*(defined(f"s{number}", enabled=False) for number in range(103)))
        async with boarded(client, source) as board:
            assert len(board.states()) == 100
            assert [problem["id"] for problem in board.merged.problems] == ["s100", "s101", "s102"]

    asyncio.run(main())


def test_a_broken_client_is_a_state_and_not_an_error_of_the_host():
    async def main():
        def behave(_):
            raise ZeroDivisionError("hunter2")

        async with boarded(ScriptedClient(behave), Source(defined("s"))) as board:
            assert (await Watch(board).until("s", "error")).detail == "ZeroDivisionError: <redacted>"

    asyncio.run(main())
