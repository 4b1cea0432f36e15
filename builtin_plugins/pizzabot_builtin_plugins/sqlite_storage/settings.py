"""The section `[storage.sqlite]`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SqliteSettings(BaseModel):
    """Few, because the defaults are what was measured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    busy_timeout_seconds: float = Field(
        default=30.0, ge=0.1, le=300.0, description="how long a write waits for another process that holds the database"
    )
    readers: int = Field(default=4, ge=1, le=32, description="reads that run at the same time")
