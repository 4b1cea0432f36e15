"""Settings of the openai plugin, and the endpoint that they and the environment amount to (spec/06 §5, §6)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from pizzabot_hookspecs import Context, InvalidRequest
from pizzabot_hookspecs.model_providers import InlineReasoning

DEFAULT_BASE_URL = "https://api.openai.com/v1"


class ApiMode(StrEnum):
    """Which of OpenAI's two protocols is spoken; `auto` chooses by model and request."""

    AUTO = "auto"
    RESPONSES = "responses"
    CHAT_COMPLETIONS = "chat-completions"


class OpenAISettings(BaseModel):
    """`[models.<use>]` with `use = "openai"`. `timeout` is seconds of silence, per attempt; `max_tokens` of one answer.

    `context_window` is for endpoints that do not say how large a model's is, `inline_reasoning` for those that leave a
    model's `<think>` tags in its text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    api_key: SecretStr | None = None
    base_url: str | None = None
    api_mode: ApiMode = ApiMode.AUTO
    max_tokens: int = Field(default=8192, ge=1, le=10_000_000)
    timeout: float = Field(default=60.0, gt=0, le=3600)
    max_retries: int = Field(default=2, ge=0, le=5)
    context_window: int | None = Field(default=None, ge=1, le=100_000_000)
    inline_reasoning: InlineReasoning = InlineReasoning.OFF

    @field_validator("base_url")
    @classmethod
    def _is_a_url(cls, value: str | None) -> str | None:
        return None if value is None or not value.strip() else clean_url(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """Where requests go and with which key; `None` is no key. `official` is OpenAI's own."""

    base_url: str
    api_key: str | None = field(repr=False)

    @property
    def official(self) -> bool:
        return urlsplit(self.base_url).hostname == "api.openai.com"

    @property
    def place(self) -> str:
        """The address for people: without path, query or anything that could be secret."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def clean_url(value: str) -> str:
    """`value` without trailing slashes. Raises ValueError where it is not an http(s) address."""
    parts = urlsplit(value.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"wants an address such as {DEFAULT_BASE_URL}")
    if parts.username or parts.password:
        raise ValueError("holds a user name or a password; the key belongs into api_key")
    _ = parts.port  # raises ValueError for one that is no number
    return value.strip().rstrip("/")


def resolve_endpoint(settings: OpenAISettings, context: Context, environ: Mapping[str, str] | None = None) -> Endpoint:
    """The section first, then OPENAI_BASE_URL and OPENAI_API_KEY.

    The key of the environment goes to the endpoint of the environment (or OpenAI's own) only: a section that names
    another endpoint and no key talks to it without one. Raises `InvalidRequest` `invalid_settings` for a bad
    OPENAI_BASE_URL.
    """
    environ = os.environ if environ is None else environ
    key = settings.api_key.get_secret_value().strip() if settings.api_key else ""
    if settings.base_url is not None:
        return Endpoint(base_url=settings.base_url, api_key=key or None)
    base_url = DEFAULT_BASE_URL
    if given := environ.get("OPENAI_BASE_URL", "").strip():
        try:
            base_url = clean_url(given)
        except ValueError as cause:
            raise InvalidRequest("invalid_settings", f"the environment variable OPENAI_BASE_URL {cause}") from cause
    return Endpoint(base_url=base_url, api_key=key or _key_of_environment(context))


def _key_of_environment(context: Context) -> str | None:
    try:
        return context.secrets.resolve({"env": "OPENAI_API_KEY"}).strip() or None
    except InvalidRequest:
        return None
