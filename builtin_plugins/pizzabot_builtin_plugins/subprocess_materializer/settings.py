"""`[materializers.subprocess]`."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, field_validator


class SubprocessSettings(BaseModel):
    """`python` is the interpreter that runs entrypoints, the host's own without it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    python: Path | None = None

    @field_validator("python")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        if value is not None and not value.expanduser().is_absolute():
            raise ValueError("name the interpreter with its whole path")
        return None if value is None else value.expanduser()
