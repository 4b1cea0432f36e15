"""Requests to one server: JSON in and out with bounded answers, and what its refusals and silences become."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pizzabot.client.errors import ClientError, RefusedError, StreamCutError, UnreachableError
from pizzabot.client.sse import frames as sse_frames

if TYPE_CHECKING:
    import httpx

TRIES = 8
"""Attempts in a row without progress: of a command whose answer is lost, of a stream that is cut. With the pauses
between them 9 s, in which a server restarts."""
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
SILENCE_SECONDS = 30.0
"""The server sends a heartbeat every 5 s; a stream that is silent for longer is dead."""
MAX_ANSWER_BYTES = 64_000_000
STOPPING = frozenset({"stopping", "shutting_down"})
"""Codes of a server that goes away: it may be back in a moment."""


class Channel:
    """The HTTP side of a client. `token` goes into the Authorization header and nowhere else."""

    def __init__(self, url: str, token: str | None, *, retry_seconds: float) -> None:
        self.url = clean_url(url)
        self._token = token
        self._retry_seconds = retry_seconds
        self._http: httpx.AsyncClient | None = None

    async def open(self) -> None:
        # In a thread: it reads the certificates of the system.
        self._http = await asyncio.to_thread(self._make_http)

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def get(self, path: str) -> Mapping[str, Any]:
        return await self._request("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._request("POST", path, body)

    async def post_safely(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """For requests that carry their own ids: sent again, unchanged, until an answer is there or tries run out."""
        for attempt in range(1, TRIES):
            try:
                return await self.post(path, body)
            except UnreachableError:
                await asyncio.sleep(self.pause(attempt))
        return await self.post(path, body)

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any] | None, None]:
        """The frames of one connection, and None for each heartbeat. Ends, or raises, with the connection."""
        import httpx

        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=SILENCE_SECONDS)
        try:
            async with self._client().stream(
                "POST", path, json=body, timeout=timeout, headers={"accept": "text/event-stream"}
            ) as answer:
                if answer.status_code != 200:
                    self._check(answer.status_code, await _bounded(answer))
                async with aclosing(sse_frames(answer.aiter_bytes())) as frames:
                    async for frame in frames:
                        if frame is not None and frame.get("type") == "error":
                            raise StreamCutError(str(frame.get("error")), str(frame.get("message")))
                        yield frame
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    def _make_http(self) -> httpx.AsyncClient:
        import httpx

        headers = {"user-agent": "pizzabot-client/1"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        return httpx.AsyncClient(
            base_url=f"{self.url}/",
            headers=headers,
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            # A proxy of the environment has no business between a person and the server on their own machine.
            trust_env=urlsplit(self.url).hostname not in ("127.0.0.1", "localhost", "::1"),
        )

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            raise ClientError("not_open", "the client is used outside of its `async with`")
        return self._http

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        import httpx

        try:
            async with self._client().stream(method, path, json=body) as answer:
                read = await _bounded(answer)
        except httpx.RequestError as error:
            raise self._unreachable(error) from error
        return self._check(answer.status_code, read)

    def _check(self, status: int, body: bytes) -> Mapping[str, Any]:
        """The JSON object of an answer. Raises `RefusedError`, or `UnreachableError` where trying again may help."""
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        answer = value if isinstance(value, dict) else {}
        if status == 200 and isinstance(value, dict) and answer.get("type") != "error":
            return answer
        if 200 < status < 300 and isinstance(value, dict):
            return answer
        code = answer.get("error")
        if not isinstance(code, str):
            if status >= 500 or status in (408, 429):
                raise UnreachableError("unavailable", f"{self.url} answers with HTTP {status}")
            code = "unauthorized" if status in (401, 403) else "bad_answer"
        if code in STOPPING:
            raise UnreachableError(code, f"the server at {self.url} is being stopped")
        detail = answer.get("message") or answer.get("detail") or f"{self.url} answers with HTTP {status}"
        raise RefusedError(code, " ".join(str(detail).split()), status=status)

    def _unreachable(self, error: Exception) -> UnreachableError:
        return UnreachableError("unreachable", f"{self.url} does not answer ({type(error).__name__})")

    def pause(self, attempt: int) -> float:
        return float(min(self._retry_seconds * 2 ** (attempt - 1), 2.0))


async def _bounded(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise StreamCutError("too_large", f"the server answers with more than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)


def clean_url(url: str) -> str:
    """Raises `ClientError` `bad_url`: not http(s), or with what belongs into a header."""
    try:
        parts = urlsplit(url.strip() if "://" in url else f"http://{url.strip()}")
        _ = parts.port
    except ValueError as cause:
        raise ClientError("bad_url", f"{url!r:.200} is no address: {cause}") from cause
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ClientError("bad_url", f"{url!r:.200} is no address such as http://127.0.0.1:8080")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ClientError("bad_url", "the address holds a query or credentials; the token goes into PIZZABOT_API_TOKEN")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
