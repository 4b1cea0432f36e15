# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""What an agent has done since it was asked last, read from its messages.

The messages are in the checkpoint: what is counted this way goes on after an approval or a crash, begins anew with the
next message, and is each agent's own (spec/05 §3.1). LangChain's counters begin at 0 with every approval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage


def since_asked(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """The messages after the last one that a person, or whoever gave a subagent its task, has said."""
    last = max((index for index, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    return messages[last + 1 :]


def model_calls(messages: Sequence[AnyMessage]) -> int:
    """Answers of the model since it was asked."""
    return sum(isinstance(message, AIMessage) for message in since_asked(messages))


def tool_calls(messages: Sequence[AnyMessage]) -> int:
    """Tool calls that the model has made since it was asked, refused ones too."""
    return sum(1 for _ in _calls(messages))


def place_of_call(messages: Sequence[AnyMessage], call_id: str | None) -> int:
    """How many tool calls came before this one since the agent was asked; 0 for one that is not among them."""
    places = [place for place, known in enumerate(_calls(messages)) if known == call_id]
    return places[-1] if places else 0


def _calls(messages: Sequence[AnyMessage]) -> Iterator[str | None]:
    for message in since_asked(messages):
        if isinstance(message, AIMessage):
            yield from (call["id"] for call in message.tool_calls)
