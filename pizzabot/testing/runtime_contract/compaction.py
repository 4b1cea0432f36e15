"""What a runtime that is a `CompactsContext` does to what the model is sent, and what it leaves as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import asked, content_text, conversation, frames_of, said, turn
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, CompactsContext, KeepsBranches

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

LONG = "word " * 400
"""A question of about 500 tokens."""
SUMMARY = "SUMMARY-OF-ALL-THAT"


class CompactionContract(RuntimeContract):
    def test_a_compacted_thread_sends_the_summary_and_keeps_every_message(self) -> None:
        async def scenario() -> None:
            storage, model = self.new_storage(), summing_up()
            async with self.runtime(storage) as runtime:
                await talk(runtime, model, 6)
                before = await runtime.state("thread-1", caller=LOCAL)
                done = await compactor(runtime).compact("thread-1", chosen(model, context_window=8000), caller=LOCAL)
                after = await runtime.state("thread-1", caller=LOCAL)
            assert before is not None
            assert after is not None
            assert conversation(after["values"]) == conversation(before["values"])
            assert after["next"] == []
            assert after["checkpoint"] is not None
            assert after["checkpoint"]["checkpoint_id"] == done.checkpoint_id
            assert 0 < done.tokens_after < done.tokens_before
            async with self.runtime(storage) as runtime:  # it survives a restart
                await frames_of(runtime.start(turn(chosen(model, context_window=8000), said("now this", "u9"))))
            sent = asked(model.calls[-1].messages)
            assert sent[-1] == ("human", "now this")
            assert any(SUMMARY in text for _, text in sent)
            assert not any("question 0 " in text for _, text in sent)

        self.run(scenario())

    def test_a_thread_with_too_little_is_left_as_it_is_and_no_model_is_called(self) -> None:
        async def scenario() -> None:
            model = summing_up()
            choice = chosen(model, context_window=8000)
            async with self.runtime(self.new_storage()) as runtime:
                with pytest.raises(Conflict) as empty:
                    await compactor(runtime).compact("thread-1", choice, caller=LOCAL)
                await frames_of(runtime.start(turn(choice, said("hi"))))
                before = await runtime.state("thread-1", caller=LOCAL)
                with pytest.raises(Conflict) as little:
                    await compactor(runtime).compact("thread-1", choice, caller=LOCAL)
                assert await runtime.state("thread-1", caller=LOCAL) == before
            assert empty.value.code == little.value.code == "nothing_to_compact"
            assert len(model.calls) == 1

        self.run(scenario())

    def test_what_was_compacted_is_not_compacted_again(self) -> None:
        async def scenario() -> None:
            model = summing_up()
            choice = chosen(model, context_window=8000)
            async with self.runtime(self.new_storage()) as runtime:
                await talk(runtime, model, 6)
                await compactor(runtime).compact("thread-1", choice, caller=LOCAL)
                calls = len(model.calls)
                with pytest.raises(Conflict):
                    await compactor(runtime).compact("thread-1", choice, caller=LOCAL)
            assert len(model.calls) == calls

        self.run(scenario())

    def test_a_branch_from_before_a_compaction_sees_everything_again(self) -> None:
        async def scenario() -> None:
            model = summing_up()
            choice = chosen(model, context_window=8000)
            async with self.runtime(self.new_storage()) as runtime:
                await talk(runtime, model, 6)
                if not isinstance(runtime, KeepsBranches):
                    return
                tip = await runtime.tip("thread-1", caller=LOCAL)
                assert tip is not None
                await compactor(runtime).compact("thread-1", choice, caller=LOCAL)
                config = {"checkpoint_id": tip}
                await frames_of(runtime.start(turn(choice, said("again", "u9"), run_id="run-9", config=config)))
            sent = asked(model.calls[-1].messages)
            assert len(sent) == 13
            assert not any(SUMMARY in text for _, text in sent)

        self.run(scenario())

    def test_a_context_that_grows_too_long_is_shortened_in_the_turn_and_told(self) -> None:
        async def scenario() -> None:
            model = summing_up()
            choice = chosen(model, context_window=6000)
            facts = []
            async with self.runtime(self.new_storage()) as runtime:
                for number in range(8):
                    question = said(f"question {number} {2 * LONG}", f"u{number}")
                    frames = await frames_of(runtime.start(turn(choice, question, run_id=f"run-{number}")))
                    facts += [frame for frame in frames if frame.method == "custom"]
                    assert asked(model.calls[-1].messages)[-1][1].startswith(f"question {number} ")
                    assert not any(SUMMARY in str(frame.data) for frame in frames if frame.method == "messages")
                state = await runtime.state("thread-1", caller=LOCAL)
            assert facts
            for fact in facts:
                assert fact.namespace == ()
                assert fact.data["name"] == "pizzabot.context"
                payload = fact.data["payload"]
                assert (payload["v"], payload["reason"]) == (1, "auto")
                assert payload["tokens_after"] < payload["tokens_before"]
            assert state is not None
            assert len(conversation(state["values"])) == 16

        self.run(scenario())


def compactor(runtime: AgentRuntime) -> CompactsContext:
    assert isinstance(runtime, CompactsContext), "a suite with `compacts_context = True` has a CompactsContext"
    return runtime


def summing_up() -> ScriptedModel:
    """Answers in a word, and gives a summary when it is handed a conversation to sum up."""

    def script(heard: Sequence[BaseMessage]) -> Reply:
        wanted = len(heard) == 1 and not content_text(heard[0].content).startswith(("question", "hi"))
        return Reply(SUMMARY if wanted else "noted")

    return ScriptedModel(script=script)


async def talk(runtime: AgentRuntime, model: ScriptedModel, count: int) -> None:
    for number in range(count):
        question = said(f"question {number} {LONG}", f"u{number}")
        await frames_of(runtime.start(turn(chosen(model, context_window=8000), question, run_id=f"run-{number}")))
