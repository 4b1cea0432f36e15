"""What commands share over HTTP and over the socket: idempotency keys, envelopes of refusals (wire.md §2)."""

from __future__ import annotations

import re
from typing import Any

from pizzabot_hookspecs import InvalidRequest

_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def idempotency_key(value: object) -> str | None:
    """Raises `InvalidRequest` `invalid_idempotency_key`."""
    if value is None or (isinstance(value, str) and _IDEMPOTENCY_KEY.fullmatch(value)):
        return value
    raise InvalidRequest("invalid_idempotency_key", "an idempotency key must be 1 to 255 visible ASCII characters")


def refusal(body: object, code: str, message: str) -> dict[str, Any]:
    """For what never reached the command."""
    return {
        "type": "error",
        "id": body.get("id") if isinstance(body, dict) else None,
        "error": code,
        "message": message,
    }
