"""Middleware of plugins: chosen by name, nearer to the model than the runtime's own, missing only with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage

from pizzabot.host.app import PizzabotHost
from pizzabot.testing import host
from pizzabot_hookspecs import LOCAL, Offer, PizzabotError, hookimpl
from pizzabot_hookspecs.agent_middleware import AgentMiddlewareSource
from pizzabot_hookspecs.host import Health
from pizzabot_hookspecs.storage_backends import RunStatus


class Closed(AgentMiddleware[Any, Any, Any]):
    """Answers in the model's place."""

    def __init__(self, heard: list[str]) -> None:
        super().__init__()
        self._heard = heard

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        self._heard.append(request.messages[-1].text)
        return ModelResponse(result=[AIMessage("We are closed.", id="closed-1")])


def plugin(heard: list[str], agents: list[str | None]) -> Any:
    class Source:
        def middleware(self, agent: str | None, /) -> Sequence[AgentMiddleware[Any, Any, Any]]:
            agents.append(agent)
            return [Closed(heard)]

    @hookimpl
    def pizzabot_agent_middleware() -> list[Offer[AgentMiddlewareSource]]:
        return [Offer(name="hours", summary="closes at night", create=lambda _context, _settings: Source())]

    return SimpleNamespace(pizzabot_agent_middleware=pizzabot_agent_middleware)


async def answer(one: PizzabotHost, text: str) -> str:
    body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"role": "user", "content": text}]}}}
    reply = await one.runs.command("t", body, caller=LOCAL)
    run_id = reply.envelope["result"]["run_id"]
    if (known := one.engine.drivers.running.get(run_id)) is not None:
        await known.settled.wait()
    ended = await one.storage.run(run_id, caller=LOCAL)
    assert ended is not None
    assert ended.status is RunStatus.SUCCESS
    page = await one.transcripts.page("t", caller=LOCAL)
    return "".join(item.get("text", "") for item in page["turns"][-1]["items"] if item["kind"] == "text")


def test_a_named_middleware_answers_a_turn_before_any_model_call_and_what_it_said_is_in_the_log() -> None:
    heard: list[str] = []
    agents: list[str | None] = []

    async def scenario() -> None:
        settings = {"agent_middleware": {"use": ["hours"]}}
        async with host(plugins=[("hours", plugin(heard, agents))], settings=settings) as one:
            assert await answer(one, "are you there?") == "We are closed."
        assert agents[-1] is None
        assert heard == ["are you there?"]

    asyncio.run(scenario())


def test_one_that_nobody_named_does_not_act() -> None:
    heard: list[str] = []

    async def scenario() -> None:
        async with host(plugins=[("hours", plugin(heard, []))]) as one:
            assert await answer(one, "hello") == "hello"
        assert heard == []

    asyncio.run(scenario())


def test_one_that_is_named_and_not_there_keeps_the_agent_from_starting_with_the_reason() -> None:
    async def scenario() -> None:
        async with host(settings={"agent_middleware": {"use": ["missing"]}}) as one:
            with pytest.raises(PizzabotError, match="missing"):
                await one.runtime()
            assert one.health() is Health.UNHEALTHY
            status: Any = await one.status(caller=LOCAL)
            assert "missing" in status["runtime"]["detail"]

    asyncio.run(scenario())
