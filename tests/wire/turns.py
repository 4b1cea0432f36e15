"""One turn of a scenario, with something happening in its middle and between a question and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from places import Place
from scenarios import Scenario
from sdk import Scope, Talk, in_thread
from talking import HttpConversation, frame_with, is_root_end

Happens = Callable[[Place], None]
Shown = TypeVar("Shown")


def nothing(_: Place) -> None:
    pass


def cut(place: Place) -> None:
    place.cut()


def restart(place: Place) -> None:
    place.die_and_return()


async def turn(talk: Talk, place: Place, scenario: Scenario, happens: Happens = nothing) -> str:
    """Play it and check what the user saw, its end and the state; the scenario's mark."""
    mark = uuid4().hex
    if scenario.gate:
        place.gates.hold(f"{scenario.gate} {mark}")
    before = Scope()
    with place.proxy.news_kept():
        await talk.start(scenario.script(mark))
        watching = asyncio.create_task(talk.watch())
        if scenario.answers:
            before = await paused(talk, place, watching)
            watching = await answered(talk, place, scenario, mark, happens)
        await middle(place, talk.thread_id, scenario, mark)
        await talk.seeing()
        await in_thread(lambda: happens(place))
        if scenario.gate:
            place.gates.release(f"{scenario.gate} {mark}")
        scope = joined(before, await watching)
    await ended(talk, scenario, mark)
    scenario.check(mark, scope)
    return mark


async def paused(talk: Talk, place: Place, watching: asyncio.Task[Shown]) -> Shown:
    """What was shown until the latest run asked. The question is kept from the watcher until the rest is there."""
    async with HttpConversation(place.server.http) as observer:
        stream = observer.frames(talk.thread_id)
        try:
            await talk.has(await anext(frame["event_id"] async for frame in stream if is_root_end(frame)))
        finally:
            await stream.aclose()
    place.proxy.let_through()
    return await watching


async def middle(place: Place, thread_id: str, scenario: Scenario, mark: str) -> None:
    """Wait until the run stands at its gate, or its text has come so far."""
    if scenario.gate:
        gate = f"{scenario.gate} {mark}"
        await in_thread(lambda: place.gates.reached(gate))
        await stored(place, thread_id, scenario, mark)
        return
    async with HttpConversation(place.server.http) as observer:
        await frame_with(observer, thread_id, scenario.sees)


async def stored(place: Place, thread_id: str, scenario: Scenario, mark: str) -> None:
    """Wait until the log has the call at the gate, and with it all that came before, and the ends of its `siblings`.

    What a tool has told and the log not yet, in the milliseconds between, a kill takes away from those who watch.
    """
    async with HttpConversation(place.server.http) as observer:
        stream = observer.frames(thread_id, since=0)
        try:
            missing = {(scenario.gate, "tool-started"), *((name, "tool-finished") for name in scenario.siblings)}
            names: dict[str, str] = {}
            async for frame in stream:
                data = frame["params"]["data"]
                if frame["method"] != "tools":
                    continue
                if data["event"] == "tool-started":
                    names[data["tool_call_id"]] = data["tool_name"]
                    if data["tool_name"] == scenario.gate and mark not in str(data["input"]):
                        continue
                missing.discard((names.get(data["tool_call_id"]), data["event"]))
                if not missing:
                    return
        finally:
            await stream.aclose()


async def answered(talk: Talk, place: Place, scenario: Scenario, mark: str, happens: Happens) -> asyncio.Task[Scope]:
    asked = {subject(found["value"]): found["interrupt_id"] for found in await talk.interrupts(len(scenario.answers))}
    assert set(asked) == set(scenario.answers)
    await in_thread(lambda: happens(place))
    if scenario.gate:
        place.gates.hold(f"{scenario.gate} {mark}")  # again: a killed process stands nowhere
    return await talk.answer(*((asked[name], answer) for name, answer in scenario.answers.items()))


def subject(value: dict[str, Any]) -> str:
    """The question, or whom the mail goes to: what tells the interrupts of a scenario apart."""
    return str(value["question"] if "question" in value else value["action_requests"][0]["args"]["to"])


async def ended(talk: Talk, scenario: Scenario, mark: str) -> None:
    if scenario.error is None:
        scenario.check_state(mark, await talk.output())
        return
    with pytest.raises(RuntimeError, match=scenario.error):
        await talk.output()
    state = await talk.rest(lambda client: client.threads.get_state(talk.thread_id))
    assert state["next"] == []
    scenario.check_state(mark, state["values"])


def joined(before: Scope, after: Scope) -> Scope:
    """Both halves of a turn that paused, as one: a call that goes on has the outcome of its second half.

    A subagent that goes on is the one of before; its messages and calls go on as well.
    """
    subagents = before.subagents or after.subagents
    if before.subagents and after.subagents:
        subagents = [joined(first, then) for first, then in zip(before.subagents, after.subagents, strict=True)]
    return Scope(
        messages=[*before.messages, *after.messages],
        calls={**before.calls, **after.calls},
        subagents=subagents,
        values=[*before.values, *after.values],
    )
