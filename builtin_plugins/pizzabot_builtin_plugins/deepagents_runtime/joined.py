# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Several small middlewares round a model call as one: LangChain gives each in its list a span of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse


class Joined(AgentMiddleware[Any, Any, Any]):
    """`parts`, the first outermost. Each has `awrap_model_call` alone, and its answer is a `ModelResponse`."""

    def __init__(self, name: str, *parts: AgentMiddleware[Any, Any, Any]) -> None:
        super().__init__()
        self._name = name
        self._parts = parts

    @property
    def name(self) -> str:
        return self._name

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        call: Callable[..., Awaitable[Any]] = handler
        for part in reversed(self._parts):
            call = partial(part.awrap_model_call, handler=call)
        response: ModelResponse[Any] = await call(request)
        return response
