"""Reads what an Ollama server has: `/api/tags`, `/api/show`. Failures are `Unavailable` with a code of spec/06 §2."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.model_providers import ModelDescriptor

if TYPE_CHECKING:
    import httpx

DEADLINE_SECONDS = 5.0
MAX_BODY_BYTES = 4_000_000
MAX_MODELS = 500
SHOWN_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What `/api/show` says: capabilities are None where the server is too old to list them."""

    capabilities: frozenset[str] | None = None
    context_window: int | None = None

    def can(self, capability: str) -> bool | None:
        return None if self.capabilities is None else capability in self.capabilities


class Server:
    """One address. Every call opens and closes its own connection and has ended within 5 s."""

    def __init__(self, host: str, verify: ssl.SSLContext) -> None:
        self._host = host
        self._verify = verify

    async def models(self, *, context_length: int) -> Sequence[ModelDescriptor]:
        """Every model that can chat. A model whose details cannot be read is listed by its name alone."""
        async with self._client() as client:
            answer = await self._ask(client, "GET", "/api/tags")
            names = _names(answer)
            if names is None:
                raise Unavailable(
                    "endpoint", f"{self._host} answers /api/tags with something that is not a list of models"
                )
            gate = asyncio.Semaphore(SHOWN_AT_ONCE)
            shown = await asyncio.gather(*(self._tolerant_show(client, gate, name) for name in names))
        return [
            descriptor(name, details, context_length=context_length)
            for name, details in zip(names, shown, strict=True)
            if details.can("completion") is not False
        ]

    async def show(self, model: str) -> Shown:
        """Raises `Unavailable` `model_unavailable` where the server does not have the model."""
        async with self._client() as client:
            return _shown(await self._ask(client, "POST", "/api/show", {"model": model}))

    def _client(self) -> httpx.AsyncClient:
        import httpx

        return httpx.AsyncClient(base_url=self._host, verify=self._verify, timeout=DEADLINE_SECONDS)

    async def _tolerant_show(self, client: httpx.AsyncClient, gate: asyncio.Semaphore, model: str) -> Shown:
        # A little less than the deadline of the list, which is to arrive with what was learned until then.
        try:
            async with asyncio.timeout(DEADLINE_SECONDS / 2), gate:
                return _shown(await self._ask(client, "POST", "/api/show", {"model": model}))
        except (Unavailable, TimeoutError):
            return Shown()

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        import httpx

        limit = DEADLINE_SECONDS / 2
        try:
            async with asyncio.timeout(limit), client.stream(method, path, json=body) as answer:
                if answer.status_code != 200:
                    raise self._refused(answer.status_code, path, body)
                read = await self._read(answer, path)
        except TimeoutError:
            raise Unavailable("network", f"{self._host} does not answer {path} within {limit:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as cause:
            raise Unavailable(
                "network",
                f"no Ollama at {self._host} ({type(cause).__name__}): start it with `ollama serve`, or set host",
            ) from None
        return read

    def _refused(self, status: int, path: str, body: Mapping[str, Any] | None) -> Unavailable:
        if status == 404 and body is not None:
            model = body.get("model")
            return Unavailable(
                "model_unavailable", f"{self._host} has no model {model!r:.200}: `ollama pull {model:.200}`"
            )
        if status in (401, 403):
            return Unavailable("authentication", f"{self._host} refuses the request (HTTP {status})")
        return Unavailable("endpoint", f"{self._host} answers {path} with HTTP {status}: check host")

    async def _read(self, answer: httpx.Response, path: str) -> Mapping[str, Any]:
        body = bytearray()
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > MAX_BODY_BYTES:
                raise Unavailable("endpoint", f"{self._host} answers {path} with more than {MAX_BODY_BYTES} bytes")
        try:
            value = json.loads(bytes(body))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise Unavailable("endpoint", f"{self._host} answers {path} with something that is not JSON of Ollama")
        return value


def descriptor(model: str, shown: Shown, *, context_length: int) -> ModelDescriptor:
    """The smaller of what is configured and what the model advertises; tools unless the server says otherwise."""
    return ModelDescriptor(
        id=model,
        display_name=model,
        context_window=min(context_length, shown.context_window or context_length),
        supports_tools=shown.can("tools") is not False,
        supports_vision=shown.can("vision") or False,
    )


def _names(answer: Mapping[str, Any]) -> list[str] | None:
    entries = answer.get("models")
    if not isinstance(entries, list):
        return None
    found = [entry.get("model") or entry.get("name") for entry in entries[:MAX_MODELS] if isinstance(entry, dict)]
    return sorted({name for name in found if isinstance(name, str) and 0 < len(name) <= 300})


def _shown(answer: Mapping[str, Any]) -> Shown:
    listed, info = answer.get("capabilities"), answer.get("model_info")
    sizes = [
        value
        for key, value in (info.items() if isinstance(info, dict) else ())
        if key.endswith(".context_length") and isinstance(value, int) and not isinstance(value, bool) and value > 0
    ]
    capabilities = frozenset(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else None
    return Shown(capabilities=capabilities, context_window=min(sizes) if sizes else None)
