"""Settings of the ollama plugin, and the address that they and OLLAMA_HOST amount to (spec/06 §6)."""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from pizzabot_hookspecs.model_providers import InlineReasoning

DEFAULT_HOST = "http://localhost:11434"
DEFAULT_PORT = 11434


class Thinking(StrEnum):
    """Whether a model thinks before it answers; `auto` where the model says that it can."""

    AUTO = "auto"
    ENABLED = "enabled"
    DISABLED = "disabled"


class OllamaSettings(BaseModel):
    """`[models.<use>]` with `use = "ollama"`. `context_length` is tokens, `timeout` seconds of silence.

    Loading a large model from disk is silence, too: hence the long default. `inline_reasoning` is for models whose
    `<think>` tags the server leaves in the text: it takes them out of those that it knows to think.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    host: str | None = None
    context_length: int = Field(default=32_768, ge=1, le=100_000_000)
    thinking: Thinking = Thinking.AUTO
    inline_reasoning: InlineReasoning = InlineReasoning.OFF
    timeout: float = Field(default=300.0, gt=0, le=3600)

    @field_validator("host")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        return None if value is None or not value.strip() else clean_host(value)


def clean_host(value: str) -> str:
    """`value` as `scheme://host:port`: Ollama's own variable may lack the scheme, the host or the port.

    An address to listen on (0.0.0.0) is one that this machine reaches as localhost. Raises ValueError.
    """
    text = value.strip().rstrip("/")
    if "://" not in text:
        text = f"http://{text}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError(f"wants an address such as {DEFAULT_HOST}")
    host = parts.hostname or "localhost"
    if host in ("0.0.0.0", "::"):  # noqa: S104 -- it is what is replaced
        host = "localhost"
    if ":" in host:
        host = f"[{host}]"
    port = parts.port or {"https": 443}.get(parts.scheme, DEFAULT_PORT)
    return f"{parts.scheme}://{host}:{port}{parts.path}"
