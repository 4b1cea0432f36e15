"""The tools do what they say, and the one that writes does it only when a person has allowed it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pizzabot_notes
import pytest
from pizzabot_notes.notebook import MAX_CHARACTERS, Notebook

from pizzabot.host.app import PizzabotHost
from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import host, imported_by
from pizzabot.testing.runtime_contract import conversation
from pizzabot_hookspecs import LOCAL, TooLarge
from pizzabot_hookspecs.host import EventFilter

SAY = '[[tool write_note {"text": "buy olives"}]]'


def test_the_plugin_is_loaded() -> None:
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "tool-notes")
    assert (report.state, report.reason) == (PluginState.LOADED, None)


def test_listing_the_plugin_imports_no_langchain() -> None:
    assert "langchain_core" not in imported_by("pizzabot_notes.tools")


async def done(running: PizzabotHost, method: str, params: Mapping[str, Any]) -> str:
    """Do a command, and wait until its run has ended: how it ended."""
    wanted = EventFilter(channels=frozenset({"lifecycle"}))
    log = await running.runs.observe("thread-1", wanted, since=0, caller=LOCAL)
    body = {"id": 1, "method": method, "params": params}
    reply = await running.runs.command("thread-1", body, caller=LOCAL)
    assert reply.envelope["type"] == "success", reply.envelope
    try:
        async for batch in log:
            for event in batch.events:
                if event.run_id == reply.envelope["result"]["run_id"] and not event.namespace:
                    for ending in ("completed", "failed", "interrupted"):
                        if f'"{ending}"'.encode() in event.data:
                            return ending
    finally:
        await log.aclose()
    raise AssertionError("the log ended before the run")


@pytest.mark.parametrize(
    ("decision", "notes"),
    [
        ({"type": "approve"}, "buy olives"),
        ({"type": "edit", "edited_action": {"name": "write_note", "args": {"text": "buy capers"}}}, "buy capers"),
        ({"type": "reject", "message": "we have some"}, ""),
    ],
)
def test_a_note_is_written_as_the_person_decides_and_not_before(
    tmp_path: Path, decision: Mapping[str, Any], notes: str
) -> None:
    notebook = Notebook(tmp_path / "notes", max_notes=100)

    async def scenario() -> None:
        async with host(plugins=[("tool-notes", pizzabot_notes)], data_root=tmp_path) as running:
            assert await done(running, "run.start", {"input": {"messages": [{"content": SAY}]}}) == "interrupted"
            [asked] = await running.runs.interrupts("thread-1", caller=LOCAL)
            assert asked.payload["action_requests"][0]["args"] == {"text": "buy olives"}
            assert asked.payload["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject"]
            assert notebook.read() == ""

            answer = {"interrupt_id": asked.interrupt_id, "response": {"decisions": [decision]}}
            assert await done(running, "input.respond", answer) == "completed"
            assert await running.runs.interrupts("thread-1", caller=LOCAL) == []

    asyncio.run(scenario())
    assert notebook.read() == notes


def test_notes_are_read_without_asking(tmp_path: Path) -> None:
    Notebook(tmp_path / "notes", max_notes=100).write("buy olives")

    async def scenario() -> None:
        async with host(plugins=[("tool-notes", pizzabot_notes)], data_root=tmp_path) as running:
            messages = [{"content": "[[tool read_notes {}]]"}]
            assert await done(running, "run.start", {"input": {"messages": messages}}) == "completed"
            state = await running.threads.state("thread-1", caller=LOCAL)
            assert conversation(state["values"])[-1] == ("ai", "buy olives")

    asyncio.run(scenario())


def test_notes_are_bounded_in_length_and_number(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path / "notes", max_notes=2)
    assert [notebook.write("a\nb"), notebook.write("x" * MAX_CHARACTERS)] == [1, 2]
    for text, code in (("x" * (MAX_CHARACTERS + 1), "note_too_long"), ("c", "notes_full")):
        with pytest.raises(TooLarge) as raised:
            notebook.write(text)
        assert raised.value.code == code
    assert notebook.read() == "a\nb\n" + "x" * MAX_CHARACTERS
    assert (tmp_path / "notes" / "notes.ndjson").stat().st_mode & 0o777 == 0o600
