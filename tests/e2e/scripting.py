"""Scripts for the echo model: what the assistant calls and says, and what specialists do, each in words of its own."""

from __future__ import annotations

import json
from typing import Any


def use(name: str, **arguments: Any) -> str:
    """The assistant calls a tool."""
    return f"[[tool {name} {json.dumps(arguments, ensure_ascii=False)}]]"


def steps(*said: str) -> str:
    """One answer after another; each but the last has its tools' results before the next."""
    return " [[then]] ".join(said)


def delegate(to: str, *said: str) -> str:
    """The assistant hands over to a specialist, who does these steps."""
    return use("task", description=steps(*said), subagent_type=to)


def fan_out(to: str, *works: str) -> str:
    """JavaScript that has specialists do each of `works` at once and joins their reports."""
    return (
        f"(await Promise.all({json.dumps(works)}.map((description) => "
        f"task({{description, subagentType: {json.dumps(to)}}})))).join(' | ')"
    )


def one_by_one(to: str, *works: str) -> str:
    """The same, each when the one before has reported."""
    return (
        f"const reports = []; for (const description of {json.dumps(works)}) "
        f"reports.push(await task({{description, subagentType: {json.dumps(to)}}})); reports.join(' | ')"
    )
