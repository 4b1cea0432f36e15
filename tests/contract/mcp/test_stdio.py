"""The client over stdio: what a server may do, and what comes of it."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from mcp_kit import Log, appears, by_name, call, endpoint

from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.mcp_clients import CALL_META, McpEndpoint, McpTransport


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}


def test_a_tool_is_called_with_its_arguments_and_answers_with_blocks(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            answer = await call(by_name(connection.tools)["add"], a=1, b=2)
            assert answer.content == [{"type": "text", "text": "3"}]
            assert answer.artifact == {"structured_content": {"result": 3}}
            assert answer.tool_call_id == "call-1"
            await connection.ping()

    asyncio.run(main())


def test_hints_are_told_and_a_blank_description_is_the_name(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            tools = {tool.name: tool for tool in connection.tools}
            assert tools["add"].reads_only
            assert not tools["add"].idempotent
            assert tools["variable"].idempotent
            assert not tools["fail"].reads_only
            assert tools["environment"].description == tools["environment"].tool.description == "environment"

    asyncio.run(main())


def test_many_calls_share_the_session_and_a_cancelled_one_disturbs_no_other(connected, tmp_path):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            tools = by_name(connection.tools)
            first, second = tmp_path / "first", tmp_path / "second"
            waiting = asyncio.create_task(call(tools["wait_for"], path=str(first)))
            cancelled = asyncio.create_task(call(tools["wait_for"], path=str(second)))
            await appears(tmp_path / "first.begun")
            await appears(tmp_path / "second.begun")
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            assert cancelled.cancelled()
            await appears(tmp_path / "second.cancelled")  # the server was told
            assert (await call(tools["add"], a=2, b=2)).content[0]["text"] == "4"
            first.touch()
            assert (await waiting).content[0]["text"] == "seen"

    asyncio.run(main())


def test_an_error_of_a_tool_is_a_result_with_the_status_error(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            answer = await call(by_name(connection.tools)["fail"])
            assert answer.status == "error"
            assert "the printer is on fire" in answer.content[0]["text"]

    asyncio.run(main())


def test_arguments_may_be_called_as_langchains_own(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            tool = by_name(connection.tools)["config"]
            answer = await call(tool, config="a", run_manager="b", callbacks="c")
            assert answer.content[0]["text"] == "a b c"

    asyncio.run(main())


def test_every_kind_of_content_becomes_what_a_model_takes(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            answer = await call(by_name(connection.tools)["mixed"])
            assert [block["type"] for block in answer.content] == ["text", "image", "text", "text"]
            assert "'audio'" in answer.content[2]["text"]
            assert answer.content[3]["text"] == "[A page](https://example.org/a): about a"
            assert answer.artifact["structured_content"] == {"answer": 42}
            assert answer.artifact["sources"][0]["url"] == "https://example.org/a"
        async with connected(endpoint("odd.py", "future")) as connection:
            answer = await call(by_name(connection.tools)["echo"], text="x")
            assert "'hologram'" in answer.content[0]["text"]

    asyncio.run(main())


def test_a_long_result_is_cut_and_says_so(connected):
    async def main():
        async with connected(endpoint("healthy.py"), output_characters=1_000) as connection:
            answer = await call(by_name(connection.tools)["long"], characters=2_500)
            assert answer.content[0]["text"] == "x" * 1_000
            assert "1,500 more characters" in answer.content[1]["text"]
            assert answer.artifact is None

    asyncio.run(main())


def test_the_environment_is_an_allow_list_and_the_entrys_own(connected, monkeypatch):
    monkeypatch.setenv("UNRELATED_SECRET", "hunter2hunter2")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    async def main():
        async with connected(endpoint("healthy.py", env={"MINE": "1"})) as connection:
            names = (await call(by_name(connection.tools)["environment"])).content[0]["text"].split(",")
            assert {"MINE", "AWS_REGION", "PATH"} <= set(names)
            assert "UNRELATED_SECRET" not in names

    asyncio.run(main())


def test_unions_and_missing_values_reach_the_model_as_the_server_wrote_them(connected):
    async def main():
        from langchain_core.utils.function_calling import convert_to_openai_tool

        async with connected(endpoint("healthy.py")) as connection:
            shown = convert_to_openai_tool(by_name(connection.tools)["choose"])["function"]["parameters"]
            shapes = shown["properties"]["shape"]["anyOf"]
            assert [shape["type"] for shape in shapes] == ["object", "array", "null"]
            assert shown["properties"]["size"]["anyOf"][0] == {"type": "integer"}

    asyncio.run(main())


def test_what_a_middleware_sets_goes_with_the_call_as_meta(connected):
    async def main():
        async with connected(endpoint("odd.py", "meta")) as connection:
            token = CALL_META.set({"gateway/user": "u-1"})
            try:
                answer = await call(by_name(connection.tools)["echo"], text="x")
            finally:
                CALL_META.reset(token)
            assert answer.content[0]["text"] == '{"gateway/user": "u-1"}'
            assert (await call(by_name(connection.tools)["echo"], text="x")).content[0]["text"] == "null"

    asyncio.run(main())


def test_a_crash_in_a_call_fails_the_call_with_the_cause_and_ends_the_connection(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            tools = by_name(connection.tools)
            with pytest.raises(Unavailable, match="exit code 3: out of paper"):
                await call(tools["die"])
            assert "exit code 3" in await connection.closed()
            assert list(connection.stderr()) == ["out of paper"]
            with pytest.raises(Unavailable, match="exit code 3"):
                await call(tools["add"], a=1, b=1)
            with pytest.raises(Unavailable, match="exit code 3"):
                await connection.ping()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("way", "code", "told"),
    [
        ("many", "mcp_too_many_tools", "more than 500 tools"),
        ("endless", "mcp_failed", "more than 100 pages"),
        ("nonsense", "mcp_failed", "not MCP to its stdout: 'Listening on port 8080'"),
        ("huge", "mcp_failed", "more than 2,097,152 bytes"),
        ("wrong", "mcp_failed", "tools"),
        ("crash-start", "mcp_failed", "exit code 1: ModuleNotFoundError: No module named 'left_pad'"),
        ("crash-list", "mcp_failed", "segmentation fault"),
        ("refuse", "mcp_failed", "refused the handshake: not today"),
        ("old", "mcp_failed", "Unsupported protocol version"),
    ],
)
def test_a_server_that_is_none_is_refused_with_the_reason_and_leaves_nothing(connected, way, code, told):
    async def main():
        with pytest.raises(Unavailable, match=told.replace("(", "\\(")) as refused:
            async with connected(endpoint("odd.py", way)):
                pass
        assert refused.value.code == code
        if way == "crash-list":
            assert "hunter2" in refused.value.fields["stderr"]  # for the host to redact

    asyncio.run(main())


def test_a_program_that_is_not_there_is_told(connected):
    async def main():
        missing = McpEndpoint(id="test", transport=McpTransport.STDIO, command="/no/such/program")
        with pytest.raises(Unavailable, match="cannot be started: /no/such/program"):
            async with connected(missing):
                pass

    asyncio.run(main())


@pytest.mark.parametrize("way", ["silent", "silent-tools"])
def test_a_silent_server_is_given_up_at_the_deadline_and_ended(connected, way, tmp_path):
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5), connected(endpoint("odd.py", way, str(tmp_path / "pid"))):
                pass
        assert not alive(int((tmp_path / "pid").read_text()))

    asyncio.run(main())


@pytest.mark.parametrize("way", ["banner", "stderr"])
def test_noise_beside_the_protocol_does_no_harm(connected, way):
    async def main():
        async with connected(endpoint("odd.py", way)) as connection:
            assert (await call(by_name(connection.tools)["echo"], text="x")).content[0]["text"] == "hello"
            assert len(connection.stderr()) in {0, 50}

    asyncio.run(main())


def test_tools_that_are_none_are_left_out_and_counted(connected):
    async def main():
        log = Log()
        async with connected(endpoint("odd.py", "banner"), log=log) as connection:
            assert [tool.name for tool in connection.tools] == ["echo"]
        assert ("warning", "mcp.tools_left_out", {"server": "test", "count": 5}) in log.lines

    asyncio.run(main())


def test_a_server_that_reads_nothing_holds_up_neither_a_cancel_nor_the_close(connected, tmp_path):
    async def main():
        async with connected(endpoint("odd.py", "deaf", str(tmp_path / "pid"))) as connection:
            tool = by_name(connection.tools)["echo"]
            calls = [asyncio.create_task(call(tool, text="x" * 50_000)) for _ in range(8)]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await asyncio.gather(*calls)
            assert all(one.cancelled() for one in calls)
        assert not alive(int((tmp_path / "pid").read_text()))

    asyncio.run(main())


def test_closing_ends_the_whole_group_and_can_be_done_twice_in_any_task(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            pids = [int(pid) for pid in (await call(by_name(connection.tools)["pids"])).content[0]["text"].split()]
            assert all(alive(pid) for pid in pids)
            await asyncio.gather(connection.close(), asyncio.create_task(connection.close()))
            assert not any(alive(pid) for pid in pids)

    asyncio.run(main())


def test_a_server_that_ignores_term_is_killed(connected, tmp_path):
    async def main():
        async with connected(endpoint("odd.py", "stubborn", str(tmp_path / "pid"))) as connection:
            assert connection.tools
        assert not alive(int((tmp_path / "pid").read_text()))

    asyncio.run(main())


def test_a_killed_server_is_noticed_with_its_signal(connected):
    async def main():
        async with connected(endpoint("healthy.py")) as connection:
            pid = int((await call(by_name(connection.tools)["pids"])).content[0]["text"].split()[0])
            os.kill(pid, signal.SIGKILL)
            assert "signal 9" in await connection.closed()

    asyncio.run(main())
