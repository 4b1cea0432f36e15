"""Errors that cross the border, and the taxonomy of what can go wrong in a run.

PizzabotError                 a machine-readable `code`, a human `detail`, optionally the fields that are wrong
 ├── InvalidRequest           the caller's input is wrong              HTTP 400
 ├── NotPermitted             not allowed                              HTTP 403
 ├── NotFound                 no such thing, or not the caller's       HTTP 404
 ├── Conflict                 right input, wrong moment                HTTP 409
 ├── TooLarge                 over a named limit                       HTTP 413
 └── Unavailable              a part that is needed is not there       HTTP 503

Clients match on `code`, never on English. `classify` maps foreign exceptions of a model call to `RunErrorCode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class PizzabotError(Exception):
    """Base of every error that pizzabot raises on purpose.

    `code` is lower_snake_case and stable. `detail` names the thing, the value, the cause and the way out in one line.
    `fields` maps a dotted field path to what is wrong with it; empty when the fault is not about fields.
    """

    def __init__(self, code: str, detail: str, *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.fields: Mapping[str, str] = dict(fields or {})

    def __str__(self) -> str:
        return self.detail


class InvalidRequest(PizzabotError):
    """The input is malformed or asks for something that does not exist as an option."""


class NotPermitted(PizzabotError):
    """The caller may not do this, whatever the input."""


class NotFound(PizzabotError):
    """There is no such thing, or it belongs to another owner (never told apart: durable-runs rule 12)."""


class Conflict(PizzabotError):
    """The state of the thing does not allow this now: `run_active`, `idempotency_mismatch`, `thread_exists`, …"""


class TooLarge(PizzabotError):
    """Over a limit that has a name; `detail` says which and how much was given."""


class Unavailable(PizzabotError):
    """A model, a store or another part that this needs cannot be had now; `detail` says how to get it."""


class RunErrorCode(StrEnum):
    """Why a run failed, as the root `failed` frame says it in `code` (spec/05 §9). Providers may add to the set."""

    AUTH_EXPIRED = "AUTH_EXPIRED"
    TIMEOUT = "TIMEOUT"
    RATE_LIMIT = "RATE_LIMIT"
    CONTEXT_LENGTH = "CONTEXT_LENGTH"
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE"
    STREAM_ERROR = "STREAM_ERROR"
    GENERAL = "GENERAL"


# First match wins, in this order (spec/05 §9). Words are matched in lower-cased "name code message".
_SIGNS: tuple[tuple[RunErrorCode, tuple[str, ...]], ...] = (
    (
        RunErrorCode.AUTH_EXPIRED,
        (
            "session has expired",
            "reauthenticate",
            "expired token",
            "expiredtoken",
            "security token",
            "credential provider failed",
            "could not load credentials",
            "unrecognizedclient",
            "not authorized",
            "accessdenied",
            "unauthorized",
        ),
    ),
    (RunErrorCode.RATE_LIMIT, ("rate limit", "ratelimit", "throttl", "too many requests", "429")),
    (
        RunErrorCode.CONTEXT_LENGTH,
        (
            "context length",
            "context window",
            "prompt is too long",
            "input is too long",
            "too many tokens",
            "maximum context",
            "exceeds the maximum",
            "above the input budget",
        ),
    ),
    (RunErrorCode.TIMEOUT, ("timeout", "timed out", "etimedout", "aborterror")),
)


def classify(error: object) -> str:
    """The code for `error`: an exception, a string, a mapping with `name`/`code`/`message`, or None.

    A `code` attribute (or key) that is one of `RunErrorCode`, in either case, wins; else the words of spec/05 §9
    decide; else GENERAL.
    """
    if error is None:
        return RunErrorCode.GENERAL
    name, code, message = _parts(error)
    if code.upper() in RunErrorCode.__members__:
        return code.upper()
    text = f"{name} {code} {message}".lower()
    if "context size" in text and "exceed" in text:
        return RunErrorCode.CONTEXT_LENGTH
    for result, signs in _SIGNS:
        if any(sign in text for sign in signs):
            return result
    return RunErrorCode.GENERAL


def _parts(error: object) -> tuple[str, str, str]:
    if isinstance(error, str):
        return "", "", error
    if isinstance(error, Mapping):
        return str(error.get("name", "")), str(error.get("code", "")), str(error.get("message", ""))
    return type(error).__name__, str(getattr(error, "code", "") or ""), str(error)
