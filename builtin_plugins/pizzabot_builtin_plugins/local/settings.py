"""Settings of a `[models.<use>]` section with `use = "local"`."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pizzabot_hookspecs.model_providers import InlineReasoning


class LocalSettings(BaseModel):
    """Every bound has a default that suits two cores and a small model."""

    model_config = ConfigDict(extra="forbid")

    models_dir: Path | None = Field(None, description="folder of the weights; default: the user's cache")
    download: bool = Field(default=True, description="fetch a known model when it is asked for the first time")
    context_size: int = Field(8192, ge=256, le=1_048_576, description="tokens of one conversation, at most the model's")
    inline_reasoning: InlineReasoning = Field(
        InlineReasoning.OFF, description="tags of reasoning that llama.cpp leaves in the text"
    )
    max_output_tokens: int = Field(1024, ge=1, le=131_072, description="tokens of one answer")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's known value, else 0.8")
    repeat_penalty: float | None = Field(None, ge=0.5, le=2, description="default: the model's known value, else none")
    threads: int | None = Field(None, ge=1, le=256, description="default: the cores of this machine, at most 8")
    parallel: int = Field(
        1, ge=1, le=16, description="answers at a time for one model; each takes context_size of memory"
    )
    max_loaded: int = Field(1, ge=1, le=8, description="models in memory at a time; the one unused longest is unloaded")
    idle_seconds: float = Field(900, ge=0, description="unload a model that was not used for so long; 0: never")
    start_seconds: float = Field(120, gt=0, le=3600, description="how long loading may take")
    read_seconds: float = Field(300, gt=0, le=3600, description="longest silence of a running answer")
    queue_seconds: float = Field(300, gt=0, le=3600, description="how long a turn waits for its place")
    gpu_layers: int = Field(-1, ge=-1, le=1000, description="layers on the GPU, where there is one; -1: as many as fit")
    prompt_cache_mib: int = Field(128, ge=0, le=65_536, description="memory for the prompts of other conversations")

    @property
    def folder(self) -> Path:
        return self.models_dir.expanduser() if self.models_dir else default_folder()


def default_folder() -> Path:
    """`PIZZABOT_MODELS_DIR`, else `pizzabot/models` in the user's cache."""
    if chosen := os.environ.get("PIZZABOT_MODELS_DIR"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("pizzabot")) / "models"
