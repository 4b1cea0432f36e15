"""The section `[runtime.replay]`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Mode(StrEnum):
    AUTO = "auto"
    RECORD = "record"
    REPLAY = "replay"


class ReplaySettings(BaseModel):
    """`auto` replays what was recorded and asks the model for the rest, `record` always asks, `replay` never does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Mode = Field(default=Mode.AUTO, description="auto, record or replay")
    max_recordings: int = Field(default=10_000, ge=1, description="answers that are kept; the oldest go first")
    max_messages: int = Field(default=2_000, ge=2, description="messages of one conversation")
