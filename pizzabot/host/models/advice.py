"""The ways to get a model, said wherever somebody meets a host without one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way: what it gives, and what to type or write."""

    title: str
    command: str


WAYS: tuple[Way, ...] = (
    Way(
        title="a small model on this machine, fetched once (98 MB)",
        command='pip install "pizzabot-host[local]" && pizzabot serve --model local:smollm2-135m',
    ),
    Way(
        title="a model that Ollama serves on this machine",
        command='pip install "pizzabot-host[ollama]" && pizzabot serve --model ollama:NAME',
    ),
    Way(
        title="any OpenAI-compatible service",
        command='pip install "pizzabot-host[openai]" && OPENAI_API_KEY=… pizzabot serve --model openai:NAME',
    ),
)


def advice() -> str:
    """All of them in one line."""
    ways = "; ".join(f"({number}) {way.title}: {way.command}" for number, way in enumerate(WAYS, start=1))
    return f"no model is configured. Ways to get one: {ways}"
