"""The ways to get a model, said wherever somebody meets a host without one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way: what it gives, and what to type or write."""

    title: str
    command: str


_WAYS = (
    (
        "a small model on this machine, fetched once (93 MB)",
        "local",
        "xllamacpp",
        "pizzabot serve --model local:smollm2-135m",
    ),
    ("a model that Ollama serves on this machine", "ollama", "langchain_ollama", "pizzabot serve --model ollama:NAME"),
    (
        "any OpenAI-compatible service",
        "openai",
        "langchain_openai",
        "OPENAI_API_KEY=… pizzabot serve --model openai:NAME",
    ),
)
"""What it gives, the extra it needs, a module of that extra, the command."""


@cache
def ways() -> tuple[Way, ...]:
    """In the order of their simplicity; an extra that is installed already is not asked for."""
    return tuple(
        Way(
            title=title,
            command=command if find_spec(module) is not None else f'pip install "pizzabot-host[{extra}]" && {command}',
        )
        for title, extra, module, command in _WAYS
    )


def advice() -> str:
    """All of them in one line."""
    told = "; ".join(f"({number}) {way.title}: {way.command}" for number, way in enumerate(ways(), start=1))
    return f"no model is configured. Ways to get one: {told}"
