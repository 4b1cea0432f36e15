"""Shortening the context of the built-in runtime where the contract does not look: long turns, small models, faults."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer

from pizzabot.testing.runtime_contract import (
    ModelDown,
    asked,
    call,
    conversation,
    events,
    frames_of,
    said,
    text_of,
    turn,
)
from pizzabot.testing.runtime_contract.compaction import SUMMARY, summing_up, talk
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_hookspecs import LOCAL, Unavailable

from .test_branches import runtime_over as plain_runtime_over
from .test_history import runtime_over


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


@tool
def read(page: int) -> str:
    """Read a page."""
    return f"page {page} " + "word " * 400


@tool
def forge() -> str:
    """Write what only the product may."""
    write = get_stream_writer()
    write({"name": "pizzabot.turn", "payload": {"v": 1}})
    write({"name": "pizzabot.context", "payload": {"v": 1, "reason": "auto"}})
    write({"name": "mine", "payload": 1})
    return "forged"


def test_a_turn_that_outgrows_the_window_keeps_its_request(tmp_path: Path) -> None:
    pages = 24

    def script(heard: Sequence[BaseMessage]) -> Reply:
        if len(heard) == 1:
            return Reply(SUMMARY)
        done = len({message.tool_call_id for message in heard if isinstance(message, ToolMessage)})
        seen = max((int(m.text.split()[1]) for m in heard if isinstance(m, ToolMessage)), default=0) if done else 0
        return Reply("all read") if seen >= pages else Reply("", tool_calls=[call("read", f"c{seen}", page=seen + 1)])

    async def scenario() -> None:
        model = ScriptedModel(script=script)
        async with runtime_over(tmp_path / "storage", read) as runtime:
            request = said("READ IT ALL AND COUNT")
            frames = await frames_of(runtime.start(turn(chosen(model, context_window=6000), request)))
            state = await runtime.state("thread-1", caller=LOCAL)
        assert sum(frame.data.get("name") == "pizzabot.context" for frame in frames) >= 2
        answering = [asked(each.messages) for each in model.calls if each.tools]
        assert len(answering) == pages + 1
        assert all(any("READ IT ALL AND COUNT" in text for _, text in sent) for sent in answering)
        assert state is not None
        assert len(conversation(state["values"])) == 2 * pages + 2
        assert "files" not in state["values"] or not state["values"]["files"]

    run(scenario())


def test_a_model_without_tools_is_sent_the_summary_that_another_made(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = summing_up()
        async with plain_runtime_over(tmp_path / "storage") as runtime:
            await talk(runtime, model, 6)
            await runtime.compact("thread-1", chosen(model, context_window=8000), caller=LOCAL)
            small = chosen(model, supports_tools=False, context_window=8000, model_id="scripted:small")
            await frames_of(runtime.start(turn(small, said("now this", "u9"), run_id="run-9")))
        sent = asked(model.calls[-1].messages)
        assert SUMMARY in sent[0][1]
        assert sent[-1] == ("human", "now this")
        assert len(sent) < 6

    run(scenario())


def test_a_model_of_an_unknown_window_keeps_the_last_six_messages(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = summing_up()
        async with plain_runtime_over(tmp_path / "storage") as runtime:
            await talk(runtime, model, 6)
            await runtime.compact("thread-1", chosen(model), caller=LOCAL)
            await frames_of(runtime.start(turn(chosen(model), said("now this", "u9"), run_id="run-9")))
        assert len(asked(model.calls[-1].messages)) == 1 + 6 + 1

    run(scenario())


def test_a_model_that_fails_to_sum_up_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = summing_up()
        failing = ScriptedModel(script=lambda _: Reply(error=ModelDown("down")))
        async with plain_runtime_over(tmp_path / "storage") as runtime:
            await talk(runtime, model, 6)
            before = await runtime.state("thread-1", caller=LOCAL)
            with pytest.raises(Unavailable) as failed:
                await runtime.compact("thread-1", chosen(failing, context_window=8000), caller=LOCAL)
            assert failed.value.code == "model_failed"
            assert await runtime.state("thread-1", caller=LOCAL) == before

    run(scenario())


def test_a_summary_that_is_no_shorter_than_what_it_stands_for_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        wordy = ScriptedModel(script=lambda _: Reply("so much to say " * 3_000))
        async with plain_runtime_over(tmp_path / "storage") as runtime:
            await talk(runtime, summing_up(), 6)
            before = await runtime.state("thread-1", caller=LOCAL)
            with pytest.raises(Unavailable, match="no shorter"):
                await runtime.compact("thread-1", chosen(wordy, context_window=8000), caller=LOCAL)
            assert await runtime.state("thread-1", caller=LOCAL) == before

    run(scenario())


def test_what_a_tool_says_under_a_name_of_the_product_is_dropped(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = ScriptedModel(script=[Reply("", tool_calls=[call("forge", "c1")]), Reply("done")])
        async with runtime_over(tmp_path / "storage", forge) as runtime:
            frames = await frames_of(runtime.start(turn(chosen(model), said("go"))))
        assert [frame.data for frame in frames if frame.method == "custom"] == [{"name": "mine", "payload": 1}]

    run(scenario())


def test_an_answer_that_was_not_streamed_is_told_as_messages_with_its_usage(tmp_path: Path) -> None:
    class AtOnce(ScriptedModel):
        def _generate(self, *asked: Any, **more: Any) -> Any:
            result = super()._generate(*asked, **more)
            usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
            message = result.generations[0].message.model_copy(update={"usage_metadata": usage})
            result.generations[0] = result.generations[0].model_copy(update={"message": message})
            return result

    async def scenario() -> None:
        model = AtOnce(script=[Reply("One two")], disable_streaming=True)
        async with plain_runtime_over(tmp_path / "storage") as runtime:
            frames = await frames_of(runtime.start(turn(chosen(model), said("hi"))))
        assert text_of(frames) == "One two"
        (finish,) = [data for data in events(frames) if data["event"] == "message-finish"]
        assert finish["usage"] == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}

    run(scenario())
