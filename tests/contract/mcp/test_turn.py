"""A turn of the agent that delegates to a skill, which calls a tool of a server: all of it real but the model."""

import asyncio
import json

import pytest
from mcp_kit import Watch, entry, hosted

from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.host import EventFilter


@pytest.fixture
def skill(tmp_path):
    folder = tmp_path / "skills" / "sums"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\ndescription: does sums\ntools: [mcp:calc:*]\n---\nAdd.\n")


async def said(opened, text):
    """The data of a turn's events as text, to its end."""
    run = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"type": "human", "content": text}]}}}
    everything = EventFilter(channels=frozenset({"lifecycle", "messages", "tools"}))
    reply = await opened.runs.command("t", run, caller=LOCAL)
    assert reply.envelope["type"] == "success", reply.envelope
    events = await opened.runs.observe("t", everything, caller=LOCAL)
    seen = []
    try:
        async for batch in events:
            for event in batch.events:
                seen.append(event.data.decode())
                ended = event.method == "lifecycle" and not event.namespace
                if ended and json.loads(event.data)["event"] in {"completed", "failed"}:
                    return "\n".join(seen)
    finally:
        await events.aclose()


def asked(tool, arguments):
    inner = f"[[tool {tool} {json.dumps(arguments)}]]"
    return f"[[tool task {json.dumps({'description': inner, 'subagent_type': 'sums'})}]]"


def test_a_skill_calls_the_tool_of_its_server_under_its_long_name(tmp_path, skill):
    async def main():
        async with hosted(tmp_path, {"calc": entry("healthy.py")}) as opened:
            await Watch(opened.mcp_board).until("calc", "connected")
            await opened.runtime()
            await opened.skill_parts.live.refresh()
            told = await said(opened, asked("calc__add", {"a": 20, "b": 22}))
            assert "calc__add" in told
            assert "42" in told

    asyncio.run(main())
    log = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    assert "mcp.call_completed" in log


def test_a_server_that_crashes_in_a_turn_is_a_result_and_the_turn_goes_on(tmp_path, skill):
    async def main():
        async with hosted(tmp_path, {"calc": entry("healthy.py")}) as opened:
            await Watch(opened.mcp_board).until("calc", "connected")
            await opened.runtime()
            await opened.skill_parts.live.refresh()
            told = await said(opened, asked("calc__die", {}))
            assert "exit code 3: out of paper" in told
            assert json.loads(told.splitlines()[-1])["event"] == "completed"

    asyncio.run(main())


def test_a_turn_does_not_wait_for_servers_that_hang(tmp_path, skill):
    async def main():
        silent = {f"s{number}": entry("odd.py", "silent") for number in range(5)}
        async with hosted(tmp_path, {**silent, "calc": entry("odd.py", "silent")}) as opened:
            await opened.runtime()
            async with asyncio.timeout(5):
                assert "hello there" in await said(opened, "hello there")
            assert {state.status.value for state in opened.mcp_board.states().values()} == {"loading"}

    asyncio.run(main())
