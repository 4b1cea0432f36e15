"""Lists an endpoint's models (`GET /models`) and says in a code of spec/06 §2 why it cannot."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from pizzabot_builtin_plugins.openai.settings import Endpoint
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.model_providers import ModelDescriptor

DEADLINE_SECONDS = 5.0
MAX_BODY_BYTES = 4_000_000
MAX_MODELS = 2_000
MAX_ID_CHARS = 300

# What the list holds besides chat models (spec/06 §6).
NOT_CHAT = (
    "embedding",
    "dall-e",
    "whisper",
    "moderation",
    "realtime",
    "gpt-image",
    "chatgpt-image",
    "tts-",
    "sora",
)


async def list_models(endpoint: Endpoint, *, verify: ssl.SSLContext) -> Sequence[ModelDescriptor]:
    """Chat models by id. Raises `Unavailable`: authentication, network, endpoint; never with the endpoint's words."""
    body = await _fetch(endpoint, verify)
    entries = _entries(body)
    if entries is None:
        raise Unavailable("endpoint", f"{endpoint.place} answers /models with something that is not a list of models")
    found = {
        entry["id"]: _descriptor(entry, endpoint)
        for entry in entries[:MAX_MODELS]
        if isinstance(entry, dict) and _is_chat(entry.get("id"))
    }
    return [found[model] for model in sorted(found)]


def _entries(body: bytes) -> list[Any] | None:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    entries = answer.get("data") if isinstance(answer, dict) else None
    return entries if isinstance(entries, list) else None


async def _fetch(endpoint: Endpoint, verify: ssl.SSLContext) -> bytes:
    import httpx

    headers = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    try:
        async with (
            asyncio.timeout(DEADLINE_SECONDS),
            httpx.AsyncClient(verify=verify, timeout=DEADLINE_SECONDS) as client,
            client.stream("GET", f"{endpoint.base_url}/models", headers=headers) as answer,
        ):
            if answer.status_code != 200:
                raise _refused(endpoint, answer.status_code)
            return await _body(endpoint, answer)
    except TimeoutError:
        raise Unavailable(
            "network", f"{endpoint.place} does not answer /models within {DEADLINE_SECONDS:g} s"
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as cause:
        raise Unavailable(
            "network", f"{endpoint.place} cannot be reached ({type(cause).__name__}): check base_url and the network"
        ) from None


async def _body(endpoint: Endpoint, answer: Any) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise Unavailable("endpoint", f"{endpoint.place} answers /models with more than {MAX_BODY_BYTES} bytes")
    return bytes(body)


def _refused(endpoint: Endpoint, status: int) -> Unavailable:
    if status in (401, 403):
        return Unavailable("authentication", f"{endpoint.place} refuses the key (HTTP {status}): check api_key")
    return Unavailable("endpoint", f"{endpoint.place} answers /models with HTTP {status}: check base_url")


def _is_chat(model: object) -> bool:
    return (
        isinstance(model, str)
        and 0 < len(model) <= MAX_ID_CHARS
        and not any(sign in model.lower() for sign in NOT_CHAT)
    )


def _descriptor(entry: Mapping[str, Any], endpoint: Endpoint) -> ModelDescriptor:
    meta = entry.get("meta")
    known = endpoint.official or None
    return ModelDescriptor(
        id=entry["id"],
        display_name=entry["id"],
        # vLLM says max_model_len, LM Studio and routers context_length, llama.cpp meta.n_ctx.
        context_window=_positive(entry.get("max_model_len"))
        or _positive(entry.get("context_length"))
        or _positive(entry.get("context_window"))
        or (_positive(meta.get("n_ctx")) if isinstance(meta, dict) else None),
        max_output_tokens=_positive(entry.get("max_output_tokens")),
        supports_tools=known,
        supports_vision=known,
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
