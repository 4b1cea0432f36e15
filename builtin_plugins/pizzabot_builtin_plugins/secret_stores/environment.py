"""Secrets from environment variables. A blank variable counts as unset."""

from __future__ import annotations

import os
from collections.abc import Mapping


class EnvironmentStore:
    """`environ` is read at each call, so that a test or a supervisor may change it."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    def get(self, name: str, /) -> str | None:
        return self._environ.get(name, "").strip() or None
