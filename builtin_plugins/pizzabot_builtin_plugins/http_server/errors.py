"""Errors as statuses: the classes of `pizzabot_hookspecs.errors`, and Litestar's own (architecture §7)."""

from __future__ import annotations

from http import HTTPStatus

from pizzabot_hookspecs import Conflict, InvalidRequest, NotFound, NotPermitted, PizzabotError, TooLarge, Unavailable
from pizzabot_hookspecs.host import CommandOutcome

_STATUSES: tuple[tuple[type[PizzabotError], int], ...] = (
    (InvalidRequest, 400),
    (NotPermitted, 403),
    (NotFound, 404),
    (Conflict, 409),
    (TooLarge, 413),
    (Unavailable, 503),
)

_STATUSES_OF_CODES = {"artifact_changed": 412, "not_text": 415}
"""What has a status of its own, whatever its class (spec/12 §2.1)."""

COMMAND_STATUSES: dict[CommandOutcome, int] = {
    CommandOutcome.DONE: 200,
    CommandOutcome.REFUSED: 200,
    CommandOutcome.MALFORMED: 400,
    CommandOutcome.UNKNOWN: 422,
    CommandOutcome.NOT_FOUND: 404,
    CommandOutcome.UNAVAILABLE: 503,
}
"""A refusal is 200 with an error envelope: the SDK makes a `ProtocolError` with its code of it (wire.md §0)."""

_CODES = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "request_too_large",
    415: "unsupported_media_type",
    422: "invalid_request",
}


def status_of(error: PizzabotError) -> int:
    own = _STATUSES_OF_CODES.get(error.code)
    return own or next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def code_of(status: int) -> str:
    """The code for a status that the framework chose."""
    return _CODES.get(status, HTTPStatus(status).phrase.lower().replace(" ", "_").replace("-", "_"))
