"""Makes what a model call raises say what happened: a `RunErrorCode` as `code` and a sentence with the way out.

The exception keeps its class: summarisation reacts to LangChain's overflow error, retries to its `is_retryable`.
"""

from __future__ import annotations

import re

from pizzabot_hookspecs.errors import RunErrorCode, classify

MAX_DETAIL_CHARS = 500


def explain(error: Exception, *, place: str, model: str, secret: str | None, emitted: bool) -> None:
    """Set `code` and the text of `error`.

    `place` is the endpoint's address; `secret` never appears in the text; `emitted` is whether output came before.
    """
    code, sentence = _verdict(error, place, model, emitted=emitted)
    text = _told(error, secret)
    error.args = (f"{sentence}: {text}" if text and text not in sentence else sentence, *error.args[1:])
    error.code = code  # type: ignore[attr-defined]


def _verdict(error: Exception, place: str, model: str, *, emitted: bool) -> tuple[RunErrorCode, str]:
    names = {base.__name__ for base in type(error).__mro__}
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and "ContextOverflowError" not in names:
        return _by_status(status, place, model) or _by_words(error, place, model)
    broken = RunErrorCode.STREAM_ERROR, f"{place} broke off in the middle of its answer"
    dead = RunErrorCode.MODEL_UNAVAILABLE, f"{place} cannot be reached; check base_url and that it runs"
    late = RunErrorCode.TIMEOUT, f"{place} does not answer in time; it may be overloaded, or `timeout` is too short"
    for signs, verdict in (
        ({"ContextOverflowError"}, (RunErrorCode.CONTEXT_LENGTH, f"the conversation is too long for {model}")),
        ({"TimeoutError", "APITimeoutError", "TimeoutException"}, late),
        ({"APIConnectionError"}, broken if emitted else dead),
        ({"TransportError", "JSONDecodeError"}, broken),
    ):
        if names & signs:
            return verdict
    return _by_words(error, place, model)


def _by_status(status: int, place: str, model: str) -> tuple[RunErrorCode, str] | None:
    if status in (401, 403):
        return RunErrorCode.AUTH_EXPIRED, f"{place} refuses the key (HTTP {status}); check api_key"
    if status == 429:
        return RunErrorCode.RATE_LIMIT, f"{place} limits the rate or the budget of requests (HTTP 429)"
    if status == 404:
        return RunErrorCode.MODEL_UNAVAILABLE, f"{place} has no model {model} (HTTP 404); check its name and base_url"
    return (RunErrorCode.MODEL_UNAVAILABLE, f"{place} fails (HTTP {status})") if status >= 500 else None


def _by_words(error: Exception, place: str, model: str) -> tuple[RunErrorCode, str]:
    return RunErrorCode(classify(error)), f"{place} refuses the request to {model}"


def _told(error: Exception, secret: str | None) -> str:
    """What the endpoint said, in one line, without the key, its masked forms or a page of HTML."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    text = said if isinstance(said, str) else str(error)
    if text.lstrip().lower().startswith(("<!doctype", "<html")):
        return ""
    if secret:
        text = text.replace(secret, "[redacted]")
    text = re.sub(r"\bsk-[\w*-]{4,}", "[redacted]", text)
    return " ".join(text.split())[:MAX_DETAIL_CHARS]
