# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Everything that happens around one tool call, in one place, in this order:

skipped?  ->  readable?  ->  within the limit?  ->  asked (approvals)  ->  announced (intent)  ->  run  ->
an error becomes a result

One middleware and not four: the order is what makes it safe, and nothing can come between an approval and its call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.types import Command

from pizzabot_builtin_plugins.deepagents_runtime.approvals import (
    arguments_fault,
    ask,
    refusal,
    repeated_refusal,
    with_notice,
)
from pizzabot_builtin_plugins.deepagents_runtime.big_numbers import with_storable_artifact
from pizzabot_builtin_plugins.deepagents_runtime.decisions import REFUSING
from pizzabot_builtin_plugins.deepagents_runtime.intents import results_in
from pizzabot_builtin_plugins.deepagents_runtime.limits import OVER_BUDGET, UNLIMITED, budget
from pizzabot_builtin_plugins.deepagents_runtime.malformed import fault_of
from pizzabot_builtin_plugins.deepagents_runtime.open_messages import js_namespace
from pizzabot_builtin_plugins.deepagents_runtime.plain import TOLD_RESULT
from pizzabot_builtin_plugins.deepagents_runtime.tool_errors import error_message, error_result
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import TASK
from pizzabot_builtin_plugins.deepagents_runtime.turn_messages import place_of_call
from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools, turn_in
from pizzabot_hookspecs.agent_runtimes import UnreadySkill
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.wire import Namespace

CANCELLED_RESULT = "Cancelled by the user."
"""What a tool call that had not begun is answered with after a stop, so that the next message finds no open call."""
BEGUN_RESULT = "Stopped by the user while it was running. Whether it took effect is not known."
Result: TypeAlias = "ToolMessage | Command[Any]"
Handler: TypeAlias = Callable[[ToolCallRequest], Awaitable[Result]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call under way. `namespace` is its own, as clients see it; the graph that makes it has one segment less."""

    call: ToolCall
    request: ToolCallRequest
    rule: AgentTool | None
    turn: TurnTools
    namespace: Namespace
    redact: Callable[[str], str]
    limit: int = UNLIMITED

    @property
    def call_id(self) -> str:
        return self.call["id"] or ""

    def answer(self, message: ToolMessage) -> ToolMessage:
        """`message` as the result of a call that did not run: LangGraph reports only tools that do."""
        self.request.runtime.stream_writer({TOLD_RESULT: message})
        return message


class ToolCalls(AgentMiddleware[Any, Any, Any]):
    """Around every call of one agent, whose tools have these rules. `task` and names that do not exist have none."""

    def __init__(
        self,
        rules: Mapping[str, AgentTool],
        *,
        redact: Callable[[str], str] = str,
        subagent: bool = False,
        unready: Sequence[UnreadySkill] = (),
    ) -> None:
        """`unready` are the specialists that exist and cannot be called."""
        super().__init__()
        self._unready = {skill.name: skill for skill in unready}
        self._subagent = subagent
        self._rules = rules
        self._redact = redact

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Result:
        call = request.tool_call
        step = Step(
            call=call,
            request=request,
            rule=self._rules.get(call["name"]),
            turn=cast("TurnTools", request.runtime.context),
            namespace=js_namespace(request.runtime.config["configurable"]["checkpoint_ns"]),
            redact=self._redact,
            limit=budget(turn_in(request.runtime.context), subagent=self._subagent),
        )
        missing = self._unready.get(str(call["args"].get("subagent_type"))) if call["name"] == TASK else None
        if missing is not None:
            text = f"{missing.name} cannot be called now ({missing.state}): {missing.detail}. Say so, or go on without."
            return step.answer(error_message(text, call))
        result = await _result(step, handler)
        if len(step.namespace) == 1:
            for message in results_in([("messages", _messages(result))]):
                step.turn.results[message.tool_call_id] = message
        return result


async def _result(step: Step, handler: Handler) -> Result:
    text = step.turn.skip.get(step.call_id)
    if text is not None:
        return step.answer(error_message(text, step.call))
    fault = fault_of(step.request.state["messages"], step.call_id)
    if fault is not None:
        return step.answer(error_message(fault, step.call))
    if step.limit != UNLIMITED and place_of_call(step.request.state["messages"], step.call_id) >= step.limit:
        return step.answer(error_message(OVER_BUDGET.format(limit=step.limit), step.call))
    if step.rule is None:
        result = await _run(step, step.call, handler)
        return step.answer(result) if step.request.tool is None and isinstance(result, ToolMessage) else result
    if step.rule.approval is None:
        return await _run(step, step.call, handler)
    return await _asked(step, step.rule, handler)


async def _asked(step: Step, rule: AgentTool, handler: Handler) -> Result:
    """The result of a call that a person decides. Everything before `ask` is repeated when the turn goes on."""
    if fault := arguments_fault(rule.tool, step.call["args"]):
        return step.answer(error_message(f"The arguments do not fit: {fault}\n\nNobody was asked.", step.call))
    if again := repeated_refusal(step.call, step.request.state["messages"]):
        return step.answer(again)
    decision = ask(step.call, rule, step.namespace)
    if decision["type"] not in (rule.approval or ()):  # only for an answer that came past the runtime's own check
        return step.answer(error_message(f"{decision['type']!r} is not allowed here. It was not run.", step.call))
    if decision["type"] in REFUSING:
        return step.answer(refusal(step.call, decision))
    if decision["type"] == "edit":
        return await _edited(step, rule, decision["edited_action"]["args"], handler)
    return await _run(step, step.call, handler)


async def _edited(step: Step, rule: AgentTool, args: dict[str, Any], handler: Handler) -> Result:
    if fault := arguments_fault(rule.tool, args):
        text = f"The person changed the arguments, and they do not fit: {fault}\n\nIt was not run."
        return step.answer(error_message(text, step.call))
    result = await _run(step, {**step.call, "args": args}, handler)
    return with_notice(result, args) if isinstance(result, ToolMessage) else result


async def _run(step: Step, call: ToolCall, handler: Handler) -> Result:
    """Announce the call and run it. Raises only what ends or interrupts the turn."""
    turn = step.turn
    if turn.refused(step.namespace, step.call_id):  # whatever led here: a person said no to this very call
        return step.answer(error_message("The person refused this call. It was not run.", call))
    announced = step.rule is not None and not step.rule.repeatable
    if announced and not turn.stopping:
        await turn.announce(step.call_id, tool=call["name"], namespace=step.namespace[:-1])
    if turn.stopping:
        return error_message(CANCELLED_RESULT, call)
    turn.begun.add(step.call_id)
    try:
        return with_storable_artifact(await handler(step.request.override(tool_call=call)))
    except GraphBubbleUp:
        if announced:  # it asked before it did anything (rule 10): it has not happened
            await turn.close(step.call_id)
        raise
    except BaseException as error:
        if turn.failure is not None:
            raise turn.failure from None
        if not _is_the_tools_own(error):
            raise
        return error_result(error, call, redact=step.redact)


def _is_the_tools_own(error: BaseException) -> bool:
    """Whether an error is a matter between the tool and the model.

    A CancelledError that nobody asked for would leave the call without a result.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() == 0
    return isinstance(error, Exception) and not is_invalid_resume(error)


def _messages(result: Any) -> Any:
    """The messages in what a call returned: itself, or those of its command."""
    if isinstance(result, list):
        return [message for item in result for message in _as_list(_messages(item))]
    if isinstance(result, Command):
        return result.update.get("messages") if isinstance(result.update, Mapping) else None
    return result


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
