# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""An exception of a tool as a result that the model can work with (spec/05 §3.3): what is wrong and what to do now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from langchain_core.messages import ToolCall, ToolMessage

from pizzabot_hookspecs.errors import RunErrorCode, classify

TEXT_LIMIT = 2_000
"""Characters of an error's text that the model is told: some carry a whole page of a server."""

CHAIN_LIMIT = 20
"""Causes of causes that are looked at."""

_TRY_ONCE = "The service limits how often it may be called. Try this once more at most, then answer with what you have."
_NO_ACCESS = "This is a matter of access, not of the arguments: do not change them; tell the person what is missing."
_FIX_ARGUMENTS = "Check the arguments and try again with better ones, or go on without this tool."


def error_result(error: BaseException, call: ToolCall, *, redact: Callable[[str], str] = str) -> ToolMessage:
    """The result of a call whose tool raised `error`: the innermost message, no stack or secrets, and guidance."""
    chain = list(_causes(error))
    text = next((text for cause in reversed(chain) if (text := str(cause).strip())), type(error).__name__)
    return error_message(f"{redact(text)[:TEXT_LIMIT]}\n\n{_guidance(chain)}", call)


def error_message(text: str, call: ToolCall) -> ToolMessage:
    """A result with status `error` for `call`."""
    return ToolMessage(content=text, tool_call_id=call["id"] or "", name=call["name"], status="error")


def _guidance(chain: list[BaseException]) -> str:
    codes = {classify(cause) for cause in chain}
    if RunErrorCode.RATE_LIMIT in codes or any(_status(cause) == 429 for cause in chain):
        return _TRY_ONCE
    if RunErrorCode.AUTH_EXPIRED in codes or any(_status(cause) in (401, 403) for cause in chain):
        return _NO_ACCESS
    return _FIX_ARGUMENTS


def _status(error: BaseException) -> object:
    """The HTTP status that an error of a client library carries."""
    own = getattr(error, "status_code", None) or getattr(error, "status", None)
    return own or getattr(getattr(error, "response", None), "status_code", None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """`error` and what it was raised from. Of a group the first, not what was merely being handled at the time."""
    current: BaseException | None = error
    for _ in range(CHAIN_LIMIT):
        if current is None:
            return
        yield current
        inside = current.exceptions[0] if isinstance(current, BaseExceptionGroup) else None
        current = current.__cause__ or inside
