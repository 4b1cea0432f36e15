"""What a model is told of a tool's exception (spec/05 §3.3)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pizzabot_builtin_plugins.deepagents_runtime import tool_errors
from pizzabot_builtin_plugins.deepagents_runtime.tool_errors import error_result

CALL: Any = {"name": "search", "id": "c1", "args": {}, "type": "tool_call"}


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def with_status(status: int, *, inside: bool) -> Exception:
    error = RuntimeError("request failed")
    if inside:
        error.response = SimpleNamespace(status_code=status)  # type: ignore[attr-defined]
    else:
        error.status_code = status  # type: ignore[attr-defined]
    return error


def test_the_result_is_an_error_under_the_calls_id_with_the_innermost_message_and_no_stack() -> None:
    result = error_result(caused(RuntimeError("outer"), caused(ValueError("middle"), KeyError("the city"))), CALL)
    assert (result.tool_call_id, result.name, result.status) == ("c1", "search", "error")
    assert result.text.startswith("'the city'\n\n")
    assert "Traceback" not in result.text


def test_what_was_being_handled_when_a_better_error_was_raised_is_not_told() -> None:
    error = ValueError("there is no such city")
    error.__context__ = KeyError("internal")
    assert error_result(error, CALL).text.startswith("there is no such city")


def test_an_error_without_words_is_told_by_its_class() -> None:
    assert error_result(TimeoutError(), CALL).text.startswith("TimeoutError\n\n")


def test_a_long_error_is_cut_and_a_circle_of_causes_ends() -> None:
    first, second = ValueError("x" * 50_000), ValueError("")
    first.__cause__, second.__cause__ = second, first
    assert len(error_result(first, CALL).text) < tool_errors.TEXT_LIMIT + 200


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("Too Many Requests"), "once more"),
        (with_status(429, inside=False), "once more"),
        (caused(RuntimeError("search failed"), with_status(429, inside=True)), "once more"),
        (ExceptionGroup("several", [with_status(429, inside=True)]), "once more"),
        (RuntimeError("Unauthorized"), "access"),
        (with_status(403, inside=True), "access"),
        (ValueError("no such city"), "arguments and try again"),
    ],
)
def test_the_model_is_told_what_to_do_now(error: Exception, told: str) -> None:
    assert told in error_result(error, CALL).text
