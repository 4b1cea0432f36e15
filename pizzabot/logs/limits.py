"""How much may be logged: bytes of a file, bytes of all, days, records that wait to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class LogLimits:
    """The defaults are those of spec/09 §6. `queued_records` bounds memory while the disk is slow."""

    file_bytes: int = 5 * _MIB
    total_bytes: int = 50 * _MIB
    retention_days: float = 7
    queued_records: int = 5_000

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> LogLimits:
        """`PIZZABOT_LOG_MAX_FILE_MB`, `_MAX_TOTAL_MB`, `_RETENTION_DAYS`. What is no positive number is passed over."""
        return cls(
            file_bytes=int(_positive(environ, "PIZZABOT_LOG_MAX_FILE_MB", 5) * _MIB),
            total_bytes=int(_positive(environ, "PIZZABOT_LOG_MAX_TOTAL_MB", 50) * _MIB),
            retention_days=_positive(environ, "PIZZABOT_LOG_RETENTION_DAYS", 7),
        )


def _positive(environ: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(environ.get(name, ""))
    except ValueError:
        return default
    return value if 0 < value < 1e6 else default
