# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Shortening what the model is sent (spec/12 §1.1, Compaction): DeepAgents' own middleware, told where it differs.

The thread's messages stay as they are; a summary stands for the older ones in `_summarization_event`, a channel of its
own. By itself the middleware does it at 85 % of the model's window (170,000 tokens where that is not known) and keeps a
tenth of it (the last 6 messages); `compact` does the same at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deepagents.middleware.summarization import (
    DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    SUMMARIZATION_EVENT_KEY,
    SummarizationMiddleware,
    SummarizationState,
    compute_summarization_defaults,
)
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from pizzabot_builtin_plugins.deepagents_runtime.file_backend import TurnBackend, keeps_offloads
from pizzabot_builtin_plugins.deepagents_runtime.model_requests import prompt_of
from pizzabot_builtin_plugins.deepagents_runtime.plain import SHORTENED, Shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepagents.backends.protocol import BackendProtocol
    from langchain_core.tools import BaseTool


@dataclass
class _Call:
    """One model call: the request that it answers, whether it is among what is kept, and the tokens it was sent."""

    request: HumanMessage | None
    kept: bool = True
    tokens: int = 0


_call: ContextVar[_Call | None] = ContextVar("pizzabot_summaries_call", default=None)


class Summaries(SummarizationMiddleware):
    """In the place of DeepAgents' own. `prompt` is what the model is handed (what DeepAgents prepares is longer), None
    for the turn's prompt. What is summed up is put aside as a file of the thread's (`files.OFFLOADS`), which
    the agent can read; a turn without files has none.

    `told` says that the turn tells a person when it was done; a subagent's is nobody's context but its own.
    `trimmed` is how many tokens of history are read for a summary at most.
    """

    def __init__(
        self, chat: BaseChatModel, prompt: str | None, *, told: bool = False, trimmed: int | None = None
    ) -> None:
        defaults = compute_summarization_defaults(chat)
        super().__init__(
            model=chat,
            backend=TurnBackend(),
            trigger=defaults["trigger"],
            keep=defaults["keep"],
            summary_prompt=DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
            trim_tokens_to_summarize=trimmed,
            truncate_args_settings=defaults["truncate_args_settings"],
        )
        self._prompt = prompt
        self._told = told

    @property
    def name(self) -> str:
        return "SummarizationMiddleware"

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        prompt = prompt_of(request, self._prompt)
        request = request.override(system_message=prompt)
        asks = next((item for item in reversed(request.messages) if isinstance(item, HumanMessage)), None)
        call = _Call(request=asks)

        async def counted(final: ModelRequest[Any]) -> Any:
            call.tokens = self._count_tokens(final.messages, final.system_message, final.tools)
            return await handler(final)

        before = _call.set(call)
        try:
            response = await super().awrap_model_call(request, counted)
        finally:
            _call.reset(before)
        if self._told and _was_shortened(response):
            tokens = self._count_tokens(self._get_effective_messages(request), prompt, request.tools)
            request.runtime.stream_writer({SHORTENED: Shortened(tokens_before=tokens, tokens_after=call.tokens)})
        return response

    async def compacted(
        self, values: Mapping[str, Any], tools: Sequence[BaseTool]
    ) -> tuple[dict[str, Any], Shortened] | None:
        """The event that stands for the older messages of a state, and what it saves; None for too little to sum up.

        Too little: nothing but an earlier summary stands before the messages that are kept. Raises what the model does.
        """
        messages, event = list(values.get("messages") or ()), values.get(SUMMARIZATION_EVENT_KEY)
        effective = self._apply_event_to_messages(messages, event)
        cutoff = self._determine_cutoff_index(effective)
        older, _ = self._partition_messages(effective, cutoff)
        if not self._filter_summary_messages(older):
            return None
        older, _ = await self._aoffload_inline_media(self._backend, older)
        new: Any = {
            "cutoff_index": self._compute_state_cutoff(event, cutoff),
            "summary_message": self._build_new_messages_with_path(await self._acreate_summary(older), None)[0],
            "file_path": None,
            "created_at_index": len(messages),
        }
        count = [
            self._count_tokens(sent, SystemMessage(self._prompt or ""), list(tools))
            for sent in (effective, self._apply_event_to_messages(messages, new))
        ]
        return new, Shortened(tokens_before=count[0], tokens_after=count[1])

    def _partition_messages(
        self, conversation_messages: list[AnyMessage], cutoff_index: int
    ) -> tuple[list[AnyMessage], list[AnyMessage]]:
        older, kept = super()._partition_messages(conversation_messages, cutoff_index)
        call = _call.get()
        if call is not None and call.request is not None:
            call.kept = any(message.id == call.request.id for message in kept)
        return older, kept

    async def _aoffload_to_backend(
        self, backend: BackendProtocol, messages: list[AnyMessage], session_id: str
    ) -> str | None:
        """Where nothing is kept aside, nothing has failed: the thread has the messages themselves."""
        if not keeps_offloads():
            return ""
        return await super()._aoffload_to_backend(backend, messages, session_id)

    def _build_new_messages_with_path(self, summary: str, file_path: str | None) -> list[AnyMessage]:
        """With the request in full, where a long turn has left it behind."""
        messages = super()._build_new_messages_with_path(summary, file_path or None)
        call = _call.get()
        if call is None or call.request is None or call.kept:
            return messages
        asked = call.request.content if isinstance(call.request.content, list) else [call.request.content]
        told = f"{messages[0].text}\n\nThe person's last message before this point, in full:"
        blocks = [{"type": "text", "text": item} if isinstance(item, str) else item for item in asked]
        return [messages[0].model_copy(update={"content": [{"type": "text", "text": told}, *blocks]})]


class Remembered(AgentMiddleware[Any, Any, Any]):
    """The model is handed the summary that another model made of the thread, and what came after it."""

    state_schema = SummarizationState

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        event: Any = request.state.get(SUMMARIZATION_EVENT_KEY)
        if event is None:
            return await handler(request)
        messages = SummarizationMiddleware._apply_event_to_messages(request.messages, event)  # noqa: SLF001 - pinned
        return await handler(request.override(messages=messages))


def _was_shortened(response: Any) -> bool:
    command = response.command if isinstance(response, ExtendedModelResponse) else None
    return command is not None and SUMMARIZATION_EVENT_KEY in (command.update or {})
