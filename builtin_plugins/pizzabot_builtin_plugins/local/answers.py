"""One answer of a llama.cpp child: the request, its stream, and every way in which it can go wrong, with a code."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import httpx  # noqa: TID253  loaded with the first model, in a thread

from pizzabot_builtin_plugins.local.errors import (
    LocalContextOverflowError,
    LocalModelRefusedError,
    LocalModelTimeoutError,
    LocalModelUnavailableError,
    LocalStreamBrokenError,
)
from pizzabot_builtin_plugins.local.events import MalformedEventError, completions
from pizzabot_builtin_plugins.local.pool import Pool
from pizzabot_builtin_plugins.local.process import Launch, ModelProcess
from pizzabot_hookspecs import Unavailable

MAX_ERROR_BYTES = 65_536
"""Of an error answer, no more than this is read."""


class _NeverBegan(Exception):
    """The connection broke before an answer began: where the child has died since its last turn, another is asked."""


async def answer(
    pool: Pool, launch: Launch, body: Mapping[str, Any], *, read_seconds: float
) -> AsyncGenerator[dict[str, Any], None]:
    """Stream the chunks of one chat completion. Closing the iterator closes the connection, which stops llama.cpp.

    Raises the classes of `errors`, and nothing else that the child causes.
    """
    try:
        for last in (False, True):
            async with pool.use(launch) as process:
                try:
                    async with aclosing(_stream(process, launch, body, read_seconds)) as chunks:
                        async for chunk in chunks:
                            yield chunk
                    return
                except _NeverBegan as error:
                    if last or await process.settle():
                        raise await _lost(process, launch) from error
    except Unavailable as error:
        raise LocalModelUnavailableError(error.detail) from error
    except TimeoutError as error:
        raise LocalModelTimeoutError(
            f"the local model {launch.name!r} timed out: other answers kept it busy. Try again, or raise "
            "queue_seconds, parallel or max_loaded in its section of [models]"
        ) from error


async def _stream(
    process: ModelProcess, launch: Launch, body: Mapping[str, Any], read_seconds: float
) -> AsyncGenerator[dict[str, Any], None]:
    timeout = httpx.Timeout(5.0, read=read_seconds)
    began = finished = False
    try:
        async with process.client.stream("POST", "/v1/chat/completions", json=dict(body), timeout=timeout) as response:
            began = True
            if response.status_code != 200:
                raise _refusal(launch, await _beginning(response))
            async with aclosing(completions(response.aiter_bytes())) as events:
                async for event in events:
                    if "error" in event:
                        raise _refusal(launch, json.dumps(event))
                    finished = finished or any(choice.get("finish_reason") for choice in event.get("choices", ()))
                    yield event
    except (httpx.ReadTimeout, httpx.WriteTimeout, httpx.ConnectTimeout) as error:
        raise LocalModelTimeoutError(
            f"the local model {launch.name!r} timed out: no answer for {read_seconds:g} s. Use a smaller model or a "
            "shorter conversation, or raise read_seconds in its section of [models]"
        ) from error
    except MalformedEventError as error:
        raise LocalStreamBrokenError(f"the local model {launch.name!r} broke the protocol: {error}") from error
    except httpx.HTTPError as error:
        if not began:
            raise _NeverBegan from error
        raise await _lost(process, launch) from error
    if not finished:
        raise await _lost(process, launch)


async def _beginning(response: httpx.Response) -> str:
    read = b""
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) >= MAX_ERROR_BYTES:
            break
    return read[:MAX_ERROR_BYTES].decode("utf-8", "replace")


def _refusal(launch: Launch, text: str) -> Exception:
    try:
        error = json.loads(text)["error"]
        kind, message = str(error.get("type", "")), str(error.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        kind, message = "", text[:300]
    if kind == "exceed_context_size_error" or "context size" in message:
        return LocalContextOverflowError(
            f"the conversation does not fit the context length of the local model {launch.name!r}, "
            f"{launch.context_size} tokens ({message}). Start a new thread, or raise context_size in its section of "
            "[models]"
        )
    return LocalModelRefusedError(
        f"the local model {launch.name!r} refused the request: {message[:500] or 'no reason given'}"
    )


async def _lost(process: ModelProcess, launch: Launch) -> Exception:
    if await process.settle():
        return LocalStreamBrokenError(f"the local model {launch.name!r} ended its answer in the middle; try again")
    return LocalModelUnavailableError(
        f"the local model {launch.name!r} is gone: {process.obituary} while it answered. "
        "It is loaded again for the next turn"
    )
