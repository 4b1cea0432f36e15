"""A whole host with real servers: what a person and an agent see of them (spec/01 §8, spec/10 J)."""

import asyncio
import json
import os
import select
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mcp_kit import SERVERS, Remote, Watch, call, entry, hosted, listed

from pizzabot.host.skills.roster import tool_name
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest, NotFound, Offer, Unavailable, hookimpl
from pizzabot_hookspecs.mcp_servers import McpServerDefinition

BUDGET_MS = 250
"""The longest gap of the loop that is not somebody else's load on the machine."""


def bundle(**servers):
    """A plugin that brings servers."""

    class Source:
        async def servers(self):
            return [
                McpServerDefinition(id=server_id, entry=written, plugin="bundle", root=SERVERS)
                for server_id, written in servers.items()
            ]

    class Plugin:
        @hookimpl
        def pizzabot_mcp_servers(self):
            return [Offer(name="bundle", summary="servers", create=lambda _context, _settings: Source())]

    return ("bundle", Plugin())


def test_a_server_of_every_ill_kind_delays_neither_the_start_nor_the_healthy_one(tmp_path):
    async def main():
        ill = ("silent", "silent-tools", "many", "nonsense", "crash-start", "crash-list", "huge", "wrong", "endless")
        servers = {way: entry("odd.py", way) for way in ill}
        servers |= {"gone": {"command": "no-such-program"}, "down": {"url": "http://127.0.0.1:1/mcp"}}
        began = time.monotonic()
        async with hosted(tmp_path, {**servers, "well": entry("healthy.py")}, mcp={"connect_seconds": 4}) as opened:
            assert time.monotonic() - began < 3
            watch = Watch(opened.mcp_board)
            state = await watch.until("well", "connected")
            assert (await call(state.tools["add"].tool, a=1, b=2)).content[0]["text"] == "3"
            for server_id in servers:
                await watch.until(server_id, "error")
            rows = await listed(opened)
            assert all(rows[server_id]["detail"] for server_id in servers)
            assert "could not be resolved" in rows["gone"]["detail"]
            assert "hunter2" not in json.dumps(rows["crash-list"])
            status = (await opened.status(caller=LOCAL))["mcp"]
            assert (status["loaded"], status["total"], status["available"]) == (1, len(servers) + 1, False)
            crashed = next(row for row in status["servers"] if row["name"] == "crash-list")
            assert "API_TOKEN=<redacted>" in crashed["stderrTail"][-1]

    asyncio.run(main())


def test_the_log_of_a_call_has_neither_arguments_nor_results(tmp_path):
    async def main():
        async with hosted(tmp_path, {"well": entry("healthy.py")}) as opened:
            tools = (await Watch(opened.mcp_board).until("well", "connected")).tools
            await call(tools["variable"].tool, name="PEPPERONI")
            await call(tools["fail"].tool)

    asyncio.run(main())
    log = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    lines = [json.loads(line) for line in log.splitlines() if '"mcp.call_' in line]
    assert [line["event"] for line in lines] == [
        "mcp.call_started", "mcp.call_completed", "mcp.call_started", "mcp.call_failed",
    ]  # fmt: skip
    assert lines[1]["context"]["server"] == "well"
    assert lines[1]["context"]["tool"] == "variable"
    assert lines[1]["context"]["seconds"] >= 0
    assert "PEPPERONI" not in log
    assert "printer" not in log


def test_what_the_mcp_package_cannot_read_is_not_in_the_log_either(tmp_path):
    async def main():
        async with hosted(tmp_path, {"odd": entry("odd.py", "gossip")}) as opened:
            tools = (await Watch(opened.mcp_board).until("odd", "connected")).tools
            assert (await call(tools["echo"].tool, text="PEPPERONI")).content[0]["text"] == "hello"

    asyncio.run(main())
    assert "PEPPERONI" not in "".join(path.read_text() for path in (tmp_path / "logs").iterdir())


def test_a_call_that_is_not_answered_ends_at_its_deadline_and_a_dead_server_comes_back(tmp_path):
    async def main():
        servers = {"deaf": entry("odd.py", "deaf"), "well": entry("healthy.py")}
        async with hosted(tmp_path, servers, mcp={"call_seconds": 0.2}) as opened:
            watch = Watch(opened.mcp_board)
            deaf = await watch.until("deaf", "connected")
            with pytest.raises(Unavailable, match=r"did not answer the call of echo within 0\.2 s") as late:
                await call(deaf.tools["echo"].tool, text="x")
            assert late.value.code == "mcp_timeout"
            await watch.until("deaf", "crashed")
            well = await watch.until("well", "connected")
            with pytest.raises(Unavailable):
                await call(well.tools["wait_for"].tool, path=str(tmp_path / "never"))
            assert (await call(well.tools["add"].tool, a=1, b=1)).content[0]["text"] == "2"

    asyncio.run(main())


def test_a_secret_in_a_result_or_an_error_is_hidden_from_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", "hunter2hunter2")

    async def main():
        servers = {"well": entry("healthy.py", env={"TOKEN": "${TOKEN}"})}
        async with hosted(tmp_path, servers) as opened:
            tools = (await Watch(opened.mcp_board).until("well", "connected")).tools
            assert (await call(tools["variable"].tool, name="TOKEN")).content[0]["text"] == "<redacted>"
            linked = await call(tools["link"].tool, uri="https://example.org/?t=hunter2hunter2&token=other")
            assert linked.artifact is not None
            assert "hunter2" not in json.dumps([linked.content, linked.artifact])
            assert "token=other" in json.dumps([linked.content, linked.artifact])
            answer = await call(tools["fail_with"].tool, name="TOKEN")
            assert answer.status == "error"
            assert "hunter2" not in json.dumps(answer.content)
            assert "<redacted>" in json.dumps(answer.content)

    asyncio.run(main())


def test_the_home_folder_is_no_secret_though_an_entry_refers_to_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    async def main():
        servers = {"well": entry("healthy.py", env={"ROOT": "${HOME}/notes"})}
        async with hosted(tmp_path, servers) as opened:
            tools = (await Watch(opened.mcp_board).until("well", "connected")).tools
            answer = await call(tools["variable"].tool, name="ROOT")
            assert answer.content[0]["text"] == f"{tmp_path}/home/notes"

    asyncio.run(main())


def test_a_value_that_is_written_out_in_an_entry_is_hidden_too(tmp_path):
    async def main():
        servers = {
            "calls": entry("healthy.py", env={"MY_API_KEY": "written-out-1"}),
            "starts": entry("odd.py", "tell-environment", env={"MY_API_KEY": "written-out-2"}),
        }
        async with hosted(tmp_path, servers) as opened:
            watch = Watch(opened.mcp_board)
            tools = (await watch.until("calls", "connected")).tools
            assert "written-out" not in json.dumps((await call(tools["fail_with"].tool, name="MY_API_KEY")).content)
            state = await watch.until("starts", "error")
            assert "no good: <redacted>" in state.detail
            assert "written-out" not in json.dumps(await opened.status(caller=LOCAL))

    asyncio.run(main())
    log = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    assert "written-out" not in log


def test_equal_names_on_two_servers_stand_side_by_side(tmp_path):
    async def main():
        async with hosted(tmp_path, {"one": entry("healthy.py"), "two": entry("healthy.py")}) as opened:
            watch = Watch(opened.mcp_board)
            for server_id in ("one", "two"):
                tool = (await watch.until(server_id, "connected")).tools["add"].tool
                renamed = tool.model_copy(update={"name": tool_name(server_id, "add")})
                answer = await call(renamed, a=1, b=2)
                assert (answer.name, answer.content[0]["text"]) == (f"{server_id}__add", "3")

    asyncio.run(main())


def test_hidden_tools_are_listed_nowhere(tmp_path):
    async def main():
        async with hosted(tmp_path, {"well": entry("healthy.py", hide=["fail*", "di?"])}) as opened:
            state = await Watch(opened.mcp_board).until("well", "connected")
            assert "add" in state.tools
            assert not {"fail", "fail_with", "die"} & set(state.tools)
            named = {tool["name"] for tool in (await opened.mcp_servers.tools("well", caller=LOCAL))["tools"]}
            assert named == set(state.tools)

    asyncio.run(main())


def test_a_disabled_server_is_never_started(tmp_path):
    async def main():
        pid = tmp_path / "pid"
        async with hosted(tmp_path, {"off": entry("odd.py", "banner", str(pid), enabled=False)}) as opened:
            assert (await listed(opened))["off"]["status"] == "disabled"
            assert not pid.exists()
            row = await opened.mcp_servers.enable("off", True, caller=LOCAL)
            assert (row["enabled"], row["status"]) == (True, "loading")
            await Watch(opened.mcp_board).until("off", "connected")
            row = await opened.mcp_servers.enable("off", False, caller=LOCAL)
            assert (row["enabled"], row["status"], row["toolCount"]) == (False, "disabled", 0)
            with pytest.raises(Conflict) as refused:
                await opened.mcp_servers.reconnect("off", caller=LOCAL)
            assert refused.value.code == "mcp_disabled"

    asyncio.run(main())


def test_the_list_hides_values_the_single_one_has_them_and_the_file_is_its_owners(tmp_path):
    async def main():
        written = {
            "command": "/bin/cat",
            "env": {"A": "secret-one", "B": "${B}"},
            "args": ["--token=abcdefgh"],
            "enabled": False,
        }
        async with hosted(tmp_path, None) as opened:
            row = await opened.mcp_servers.create("mine", written, caller=LOCAL)
            assert row["entry"]["env"] == {"A": "<redacted>", "B": "<redacted>"}
            assert row["entry"]["args"] == ["--token=<redacted>"]
            assert (row["source"], row["dependentSkills"]) == ("user", [])
            assert "secret-one" not in json.dumps(await opened.mcp_servers.listing(caller=LOCAL))
            single = await opened.mcp_servers.get("mine", caller=LOCAL)
            assert single == {"id": "mine", "source": "user", "entry": written}
            assert json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["mine"] == written
            assert stat.S_IMODE((tmp_path / ".mcp.json").stat().st_mode) == 0o600
            with pytest.raises(InvalidRequest, match=r"env\.A` is <redacted>"):
                await opened.mcp_servers.replace("mine", dict(row["entry"]), caller=LOCAL)
            with pytest.raises(Conflict) as taken:
                await opened.mcp_servers.create("mine", written, caller=LOCAL)
            assert taken.value.code == "already_exists"
            assert await opened.mcp_servers.delete("mine", caller=LOCAL) == {"deleted": True}
            with pytest.raises(NotFound):
                await opened.mcp_servers.get("mine", caller=LOCAL)

    asyncio.run(main())


def test_a_change_without_enabled_keeps_it_and_one_with_it_is_the_last_word(tmp_path):
    async def main():
        off = {"command": "/bin/cat", "enabled": False}
        async with hosted(tmp_path, {"s": off}) as opened:
            row = await opened.mcp_servers.replace("s", {"command": "/bin/true"}, caller=LOCAL)
            assert row["enabled"] is False
            assert row["entry"] == {"command": "/bin/true", "enabled": False}
            await opened.mcp_servers.enable("s", True, caller=LOCAL)
            row = await opened.mcp_servers.replace("s", {"command": "/bin/cat"}, caller=LOCAL)
            assert row["enabled"] is True
            row = await opened.mcp_servers.replace("s", off, caller=LOCAL)
            assert row["enabled"] is False
            row = await opened.mcp_servers.replace("s", {**off, "enabled": True}, caller=LOCAL)
            assert row["enabled"] is True

    asyncio.run(main())


def test_a_plugins_server_can_be_switched_and_not_changed_and_its_id_is_reserved(tmp_path):
    async def main():
        plugin = bundle(
            theirs=entry("healthy.py"), local={"command": sys.executable, "args": ["healthy.py"], "cwd": "."}
        )
        async with hosted(tmp_path, {}, plugins=[plugin]) as opened:
            watch = Watch(opened.mcp_board)
            await watch.until("theirs", "connected")
            await watch.until("local", "connected")
            row = (await listed(opened))["theirs"]
            assert (row["source"], row["pluginName"]) == ("plugin", "bundle")
            for refused, code in [
                (opened.mcp_servers.create("theirs", {"command": "x"}, caller=LOCAL), "reserved_id"),
                (opened.mcp_servers.replace("theirs", {"command": "x"}, caller=LOCAL), "not_editable"),
                (opened.mcp_servers.delete("theirs", caller=LOCAL), "not_deletable"),
            ]:
                with pytest.raises(Conflict) as conflict:
                    await refused
                assert conflict.value.code == code
            with pytest.raises(NotFound):
                await opened.mcp_servers.get("theirs", caller=LOCAL)
            assert (await opened.mcp_servers.enable("theirs", False, caller=LOCAL))["status"] == "disabled"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("server_id", "written", "field"),
    [
        ("a b", {"command": "x"}, "id"),
        ("../x", {"command": "x"}, "id"),
        ("s", {}, "command"),
        ("s", {"type": "ws", "url": "ws://x"}, "type"),
        ("s", {"type": "http", "url": "ftp://x"}, "url"),
        ("s", {"command": "x", "args": "y"}, "args"),
        ("s", {"command": "x", "env": {"A": 1}}, "env.A"),
        ("s", {"url": "http://x", "headers": {"A": "b\nc"}}, "headers.A"),
        ("s", {"command": "x", "enabled": "no"}, "enabled"),
        ("s", {"command": "x\0"}, "command"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_field_and_nothing_is_written(tmp_path, server_id, written, field):
    async def main():
        async with hosted(tmp_path, None) as opened:
            with pytest.raises(InvalidRequest) as refused:
                await opened.mcp_servers.create(server_id, written, caller=LOCAL)
            assert field in refused.value.fields
            assert not (tmp_path / ".mcp.json").exists()

    asyncio.run(main())


def test_a_server_that_an_enabled_skill_needs_is_not_taken_away(tmp_path):
    skill = tmp_path / "skills" / "sums"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\ndescription: does sums\ntools: [mcp:calc:add]\n---\nAdd.\n")

    async def main():
        off = entry("healthy.py", enabled=False)
        async with hosted(tmp_path, {"calc": entry("healthy.py")}) as opened:
            await Watch(opened.mcp_board).until("calc", "connected")
            await opened.skill_parts.live.refresh()
            (dependent,) = (await listed(opened))["calc"]["dependentSkills"]
            assert dependent == {"id": "sums", "name": "sums", "source": "user", "enabled": True}
            for refused in (
                opened.mcp_servers.enable("calc", False, caller=LOCAL),
                opened.mcp_servers.replace("calc", off, caller=LOCAL),
                opened.mcp_servers.delete("calc", caller=LOCAL),
            ):
                with pytest.raises(Conflict) as conflict:
                    await refused
                assert conflict.value.code == "resource_in_use"
                assert conflict.value.fields == {"sums": "sums"}
            await opened.skills.enable("sums", False, caller=LOCAL)
            assert (await opened.mcp_servers.enable("calc", False, caller=LOCAL))["status"] == "disabled"
            with pytest.raises(Conflict) as conflict:
                await opened.skills.enable("sums", True, caller=LOCAL)
            assert conflict.value.code == "dependency_disabled"

    asyncio.run(main())


def test_a_file_that_is_edited_by_hand_is_followed_and_a_broken_one_told(tmp_path):
    async def main():
        async with hosted(tmp_path, {"one": entry("healthy.py")}) as opened:
            watch = Watch(opened.mcp_board)
            await watch.until("one", "connected")
            path = tmp_path / ".mcp.json"
            path.write_text(json.dumps({"mcpServers": {"one": entry("healthy.py"), "two": entry("healthy.py")}}))
            await watch.until("two", "connected", seconds=10)
            told = asyncio.Event()
            opened.mcp_board.on_change(told.set)
            path.write_text("{")
            async with asyncio.timeout(10):
                while not (await opened.mcp_servers.listing(caller=LOCAL))["problems"]:
                    told.clear()
                    await told.wait()
            problem = (await opened.mcp_servers.listing(caller=LOCAL))["problems"][0]
            assert problem["source"] == "user"
            assert "line 1, column 2" in problem["reason"]
            assert set(await listed(opened)) == {"one", "two"}

    asyncio.run(main())


def test_a_restarted_http_server_is_back_by_itself_and_one_that_is_down_by_a_person(tmp_path):
    async def main():
        with Remote("http") as remote:
            async with hosted(tmp_path, {"web": {"url": remote.url}}, mcp={"ping_seconds": 1}) as opened:
                watch = Watch(opened.mcp_board)
                before = await watch.until("web", "connected")
                remote.kill()
                remote.start()
                with pytest.raises(Unavailable):
                    await call(before.tools["add"].tool, a=1, b=2)
                await watch.until("web", "crashed", "error")
                state = await watch.until("web", "connected")
                assert (await call(state.tools["add"].tool, a=1, b=2)).content[0]["text"] == "3"
                assert state.tools["add"] is not before.tools["add"]

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_server_whose_tools_change_is_followed_and_the_others_stay_the_same_objects(tmp_path, transport):
    async def main():
        with Remote("http") as remote:
            written = entry("healthy.py") if transport == "stdio" else {"url": remote.url}
            async with hosted(tmp_path, {"s": written}) as opened:
                watch = Watch(opened.mcp_board)
                before = await watch.until("s", "connected")
                assert "grown" not in before.tools
                await call(before.tools["grow"].tool)
                after = await watch.tools("s", "grown")
                assert (await call(after.tools["grown"].tool)).content[0]["text"] == "grown"
                assert all(after.tools[name] is tool for name, tool in before.tools.items())
                assert watch.seen["s"] == ["loading", "connected"]

    asyncio.run(main())


def test_reconnecting_answers_with_the_row_after_the_attempt(tmp_path):
    async def main():
        async with hosted(tmp_path, {"ill": entry("odd.py", "crash-start")}) as opened:
            await Watch(opened.mcp_board).until("ill", "error")
            row = await opened.mcp_servers.reconnect("ill", caller=LOCAL)
            assert row["status"] == "error"
            assert "left_pad" in row["detail"]
            with pytest.raises(NotFound):
                await opened.mcp_servers.reconnect("nobody", caller=LOCAL)

    asyncio.run(main())


def test_five_thousand_tools_do_not_hold_up_the_loop(tmp_path):
    async def main():
        async with hosted(tmp_path, {"many": entry("odd.py", "many")}) as opened:
            gaps = []

            async def tick():
                last = time.perf_counter()
                while True:
                    await asyncio.sleep(0.005)
                    gaps.append((time.perf_counter() - last) * 1_000)
                    last = time.perf_counter()

            ticking = asyncio.create_task(tick())
            await Watch(opened.mcp_board).until("many", "error")
            ticking.cancel()
            assert max(gaps) < BUDGET_MS

    asyncio.run(main())


def test_a_kill_of_our_server_leaves_no_child(tmp_path):
    """The host in a process of its own, killed without a chance to say goodbye."""
    script = tmp_path / "host.py"
    pids = tmp_path / "pids"
    script.write_text(
        f"""
import asyncio, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from pathlib import Path
from mcp_kit import Watch, call, entry, hosted

async def main():
    async with hosted(Path({str(tmp_path / "root")!r}), {{"well": entry("healthy.py")}}) as opened:
        state = await Watch(opened.mcp_board).until("well", "connected")
        answer = await call(state.tools["pids"].tool)
        Path({str(pids)!r}).write_text(answer.content[0]["text"])
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    )
    (tmp_path / "root").mkdir(mode=0o700)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        handles = [os.pidfd_open(int(pid)) for pid in pids.read_text().split()]
        process.kill()
    for handle in handles:
        readable, _, _ = select.select([handle], [], [], 10)
        assert readable, "a child outlived the server"
        os.close(handle)
