"""The shelf of graphs: one build at a time, one per model, a bounded number kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pizzabot.testing.scripted_model import ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime.graphs import GraphShelf
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
from pizzabot_hookspecs.agent_runtimes import ChosenModel

NOTHING = ToolSet()


def model(model_id: str = "scripted:a", *, supports_tools: bool | None = None) -> ChosenModel:
    return chosen(ScriptedModel(script=[]), supports_tools=supports_tools, model_id=model_id)


def with_shelf(
    scenario: Callable[[GraphShelf], Coroutine[Any, Any, None]], build: Callable[..., Any], *, kept: int = 8
) -> None:
    with ThreadPoolExecutor(1) as builder:
        asyncio.run(scenario(GraphShelf(build, builder=builder, kept=kept)))


def test_a_graph_is_built_once_per_model_and_ability() -> None:
    built: list[ChosenModel] = []

    async def scenario(shelf: GraphShelf) -> None:
        one, other = model(), model(supports_tools=False)
        graphs = await asyncio.gather(shelf.graph(one, NOTHING), shelf.graph(one, NOTHING), shelf.graph(other, NOTHING))
        assert graphs[0] is graphs[1] is await shelf.graph(one, NOTHING)
        assert graphs[2] is not graphs[0]
        assert built == [one, other]

    with_shelf(scenario, lambda choice, **_: [built.append(choice)])


def test_a_model_without_tools_has_a_second_graph_for_turns_that_go_on_and_one_with_tools_has_not() -> None:
    async def scenario(shelf: GraphShelf) -> None:
        plain, able = model(supports_tools=False), model()
        assert await shelf.graph(plain, NOTHING) == [False]
        assert await shelf.graph(plain, NOTHING, going_on=True) == [True]
        assert await shelf.graph(able, NOTHING, going_on=True) is await shelf.graph(able, NOTHING)

    with_shelf(scenario, lambda _choice, going_on, tools: [going_on])


def test_a_model_that_the_host_built_anew_gets_a_graph_of_its_own() -> None:
    async def scenario(shelf: GraphShelf) -> None:
        assert await shelf.graph(model(), NOTHING) is not await shelf.graph(model(), NOTHING)

    with_shelf(scenario, lambda choice, **_: [choice])


def test_the_graph_that_was_used_longest_ago_is_let_go_first() -> None:
    built: list[str] = []

    async def scenario(shelf: GraphShelf) -> None:
        first, second, third = (model(f"scripted:{name}") for name in "abc")
        for choice in (first, second, first, third, first, second):
            await shelf.graph(choice, NOTHING)
        assert built == ["scripted:a", "scripted:b", "scripted:c", "scripted:b"]
        assert len(shelf) == 2

    with_shelf(scenario, lambda choice, **_: [choice, built.append(choice.id)], kept=2)


def test_one_who_stops_waiting_does_not_stop_the_others() -> None:
    go = threading.Event()

    def build(choice: ChosenModel, *, going_on: bool, tools: ToolSet) -> Any:
        go.wait()
        return [choice]

    async def scenario(shelf: GraphShelf) -> None:
        choice = model()
        waiting = [asyncio.ensure_future(shelf.graph(choice, NOTHING)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        go.set()
        assert (await waiting[1]) is await shelf.graph(choice, NOTHING)

    with_shelf(scenario, build)


def test_a_build_that_fails_is_tried_again_by_the_next_turn() -> None:
    attempts: list[int] = []

    def build(choice: ChosenModel, *, going_on: bool, tools: ToolSet) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("no such model")
        return [choice]

    async def scenario(shelf: GraphShelf) -> None:
        choice = model()
        with pytest.raises(ValueError, match="no such model"):
            await shelf.graph(choice, NOTHING)
        assert await shelf.graph(choice, NOTHING)

    with_shelf(scenario, build)
