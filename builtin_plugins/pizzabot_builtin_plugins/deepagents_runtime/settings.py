"""The section `[runtime.deepagents]`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RuntimeSettings(BaseModel):
    """What can be set. The defaults suit one person on one machine.

    `graphs_kept`  compiled graphs in memory, one per model in use; the one that was used longest ago goes first
    `tracing`      whether LangSmith may record conversations when the environment asks for it. Off: a variable left
                   over from another project must not send what a person says here to a third party
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    graphs_kept: int = Field(default=8, ge=1, le=64)
    tracing: bool = False
