"""What a runtime that is a `KeepsBranches` does: told checkpoints, turns from earlier ones, going back, copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    Listener,
    ModelDown,
    asked,
    content_text,
    conversation,
    frames_of,
    said,
    said_text,
    turn,
)
from pizzabot.testing.scripted_model import Gate, Reply, ScriptedModel, chosen
from pizzabot_hookspecs import LOCAL, NotFound
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, ChosenModel, KeepsBranches, KeepsHistory
from pizzabot_hookspecs.wire import Frame

Pairs = list[tuple[str, str]]


class BranchContract(RuntimeContract):
    def test_the_last_told_checkpoint_of_a_turn_is_the_newest_one_however_it_ended(self) -> None:
        async def scenario() -> None:
            gate = Gate()
            model = ScriptedModel(
                script=[Reply("One"), Reply("Two three", gate=gate, gate_before=1), Reply(error=ModelDown("down"))]
            )
            choice = chosen(model)
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("first"))))
                assert ends(frames)[1] == await keeper(runtime).tip("thread-1", caller=LOCAL)

                run = runtime.start(turn(choice, said("second", "u2"), run_id="run-2"))
                listener = Listener(run)
                await listener.heard("Two ")
                await run.stop()
                await listener.task
                stopped = ends(listener.frames)
                assert stopped[0] == ends(frames)[1]
                assert stopped[1] == await keeper(runtime).tip("thread-1", caller=LOCAL)

                listener = Listener(runtime.start(turn(choice, said("third", "u3"), run_id="run-3")))
                with pytest.raises(ModelDown):
                    await listener.task
                assert ends(listener.frames)[1] == await keeper(runtime).tip("thread-1", caller=LOCAL)

                unheard = runtime.start(turn(choice, said("fourth", "u4"), run_id="run-4"))
                await unheard.stop()
                assert ends(await frames_of(unheard))[1] == await keeper(runtime).tip("thread-1", caller=LOCAL)
                settled = await frames_of(runtime.start(turn(choice, run_id="run-5", settle=True)))
                assert ends(settled)[1] == await keeper(runtime).tip("thread-1", caller=LOCAL)

        self.run(scenario())

    def test_a_turn_from_where_an_earlier_one_began_sees_what_that_one_saw(self) -> None:
        async def scenario() -> None:
            storage, model = self.new_storage(), echoing()
            async with self.runtime(storage) as runtime:
                bases = [ends(frames)[0] for frames in await turns(runtime, chosen(model), 3)]
            async with self.runtime(storage) as runtime:
                for number in (0, 1, 2, 1, 0):
                    await branch(runtime, chosen(model), bases[number], f"b{number}")
                    assert asked(model.calls[-1].messages) == [*up_to(number), ("human", f"b{number}")]
                    await say(runtime, chosen(model), "on")
                    pair = [("human", f"b{number}"), ("ai", f"you said b{number}")]
                    assert asked(model.calls[-1].messages) == [*up_to(number), *pair, ("human", "on")]

        self.run(scenario())

    def test_a_branch_that_is_stopped_before_it_begins_keeps_its_message_on_the_branch(self) -> None:
        async def scenario() -> None:
            model = echoing()
            async with self.runtime(self.new_storage()) as runtime:
                bases = [ends(frames)[0] for frames in await turns(runtime, chosen(model), 3)]
                config = {"checkpoint_id": bases[1]}
                run = runtime.start(turn(chosen(model), said("edit", "edit"), run_id="edit", config=config))
                await run.stop()
                await frames_of(run)
                assert await now(runtime) == [*up_to(1), ("human", "edit")]

        self.run(scenario())

    def test_going_to_an_earlier_state_makes_it_the_newest_and_the_next_turn_goes_on_from_it(self) -> None:
        async def scenario() -> None:
            storage, model = self.new_storage(), echoing()
            async with self.runtime(storage) as runtime:
                told = [ends(frames) for frames in await turns(runtime, chosen(model), 3)]
                for number in (0, 2, 1):
                    copied = await keeper(runtime).go_to("thread-1", told[number][1], caller=LOCAL)
                    assert copied == await keeper(runtime).tip("thread-1", caller=LOCAL)
                    assert await now(runtime) == up_to(number + 1)
                    state = await runtime.state("thread-1", caller=LOCAL)
                    assert state is not None
                    assert state["next"] == []
            async with self.runtime(storage) as runtime:
                assert await now(runtime) == up_to(2)
                await say(runtime, chosen(model), "on")
                assert asked(model.calls[-1].messages) == [*up_to(2), ("human", "on")]
                assert await now(runtime, told[2][1]) == up_to(3), "the old head stays as it was"

        self.run(scenario())

    def test_going_to_where_the_first_turn_began_is_an_empty_thread(self) -> None:
        async def scenario() -> None:
            model = echoing()
            async with self.runtime(self.new_storage()) as runtime:
                (first, *_) = await turns(runtime, chosen(model), 2)
                await keeper(runtime).go_to("thread-1", ends(first)[0], caller=LOCAL)
                await say(runtime, chosen(model), "on")
                assert asked(model.calls[-1].messages) == [("human", "on")]

        self.run(scenario())

    def test_which_checkpoints_there_are_is_known_and_unknown_ones_are_refused(self) -> None:
        async def scenario() -> None:
            model = echoing()
            async with self.runtime(self.new_storage()) as runtime:
                kept = keeper(runtime)
                assert await kept.tip("thread-1", caller=LOCAL) is None
                (frames,) = await turns(runtime, chosen(model), 1)
                assert await kept.has_checkpoint("thread-1", ends(frames)[1], caller=LOCAL)
                assert not await kept.has_checkpoint("thread-1", "nowhere", caller=LOCAL)
                assert not await kept.has_checkpoint("thread-2", ends(frames)[1], caller=LOCAL)
                with pytest.raises(NotFound) as gone:
                    await kept.go_to("thread-1", "nowhere", caller=LOCAL)
                with pytest.raises(NotFound) as missing:
                    await kept.copy_thread("thread-1", "nowhere", "thread-2", caller=LOCAL)
                assert gone.value.code == missing.value.code == "no_such_checkpoint"
                assert await kept.tip("thread-1", caller=LOCAL) == ends(frames)[1]
                assert await kept.tip("thread-2", caller=LOCAL) is None

        self.run(scenario())

    def test_a_copied_thread_has_the_states_up_to_its_checkpoint_and_goes_its_own_way(self) -> None:
        async def scenario() -> None:
            storage, model = self.new_storage(), echoing()
            async with self.runtime(storage) as runtime:
                told = [ends(frames) for frames in await turns(runtime, chosen(model), 4)]
                await branch(runtime, chosen(model), told[1][0], "aside")
                await keeper(runtime).copy_thread("thread-1", told[2][1], "thread-2", caller=LOCAL)
                source = await now(runtime)
            async with self.runtime(storage) as runtime:
                kept = keeper(runtime)
                assert await kept.tip("thread-2", caller=LOCAL) == told[2][1]
                assert await now(runtime, thread_id="thread-2") == up_to(3)
                assert not await kept.has_checkpoint("thread-2", told[3][1], caller=LOCAL)
                await branch(runtime, chosen(model), told[1][0], "branch", thread_id="thread-2")
                assert asked(model.calls[-1].messages) == [*up_to(1), ("human", "branch")]
                await kept.go_to("thread-2", told[2][1], caller=LOCAL)
                await say(runtime, chosen(model), "on", thread_id="thread-2")
                assert asked(model.calls[-1].messages) == [*up_to(3), ("human", "on")]
                assert await now(runtime) == source
                await runtime.forget("thread-1", caller=LOCAL)
                assert (await now(runtime, thread_id="thread-2"))[:-2] == up_to(3)
                if isinstance(runtime, KeepsHistory):
                    states = await runtime.history(
                        "thread-2", limit=1000, before=told[2][1], namespace=(), caller=LOCAL
                    )
                    assert [content_text(m["content"]) for m in messages(states[0]["values"])][:2] == [
                        "q0",
                        "you said q0",
                    ]

        self.run(scenario())


def keeper(runtime: AgentRuntime) -> KeepsBranches:
    assert isinstance(runtime, KeepsBranches), "a suite with `keeps_branches = True` has a KeepsBranches"
    return runtime


def ends(frames: Iterable[Frame]) -> tuple[str, str]:
    """What the root's `checkpoints` frames tell: where the turn began (its first turn: the checkpoint before the first
    step) and what it left."""
    told = [frame.data for frame in frames if frame.method == "checkpoints" and not frame.namespace]
    assert told, "a turn tells its root's checkpoints"
    return str(told[0].get("parent_id") or told[0]["id"]), str(told[-1]["id"])


def echoing() -> ScriptedModel:
    return ScriptedModel(script=lambda heard: Reply(f"you said {said_text(heard[-1])}"))


def up_to(number: int) -> Pairs:
    return [pair for n in range(number) for pair in (("human", f"q{n}"), ("ai", f"you said q{n}"))]


async def turns(runtime: AgentRuntime, model: ChosenModel, count: int) -> list[list[Frame]]:
    """The frames of turns that say `q0`, `q1` …"""
    return [
        await frames_of(runtime.start(turn(model, said(f"q{n}", f"u{n}"), run_id=f"run-{n}"))) for n in range(count)
    ]


async def say(runtime: AgentRuntime, model: ChosenModel, text: str, *, thread_id: str = "thread-1") -> list[Frame]:
    started = turn(model, said(text, f"{text}-{id(model)}"), run_id=f"run-{text}", thread_id=thread_id)
    return await frames_of(runtime.start(started))


async def branch(
    runtime: AgentRuntime, model: ChosenModel, base: str, text: str, *, thread_id: str = "thread-1"
) -> list[Frame]:
    started = turn(model, said(text, text), run_id=f"run-{text}", thread_id=thread_id, config={"checkpoint_id": base})
    return await frames_of(runtime.start(started))


async def now(runtime: AgentRuntime, checkpoint_id: str | None = None, *, thread_id: str = "thread-1") -> Pairs:
    state = await runtime.state(thread_id, caller=LOCAL, checkpoint_id=checkpoint_id)
    assert state is not None
    return conversation(state["values"])


def messages(values: Any) -> list[dict[str, Any]]:
    return list(values["messages"])
