"""Admission policies: asked before anything is stored; the first refusal counts, a broken policy refuses (rule 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pizzabot_hookspecs import Logger, NotPermitted, PizzabotError
from pizzabot_hookspecs.admission_policies import AdmissionPolicy, AdmissionRequest

POLICY_SECONDS = 5.0


class Policies:
    """The policies of a host, by name."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._policies: list[tuple[str, AdmissionPolicy]] = []

    def add(self, name: str, policy: AdmissionPolicy) -> None:
        self._policies.append((name, policy))

    def names(self) -> Sequence[str]:
        return [name for name, _ in self._policies]

    async def check(self, request: AdmissionRequest) -> None:
        """Raises what the first refusing policy raises."""
        for name, policy in self._policies:
            try:
                async with asyncio.timeout(POLICY_SECONDS):
                    await policy.admit(request)
            except PizzabotError:
                raise
            except Exception as error:
                self._logger.error(
                    "admission.policy_failed", policy=name, cause=type(error).__name__, detail=str(error)
                )
                raise NotPermitted(
                    "admission_failed",
                    f"the admission policy {name!r} failed ({type(error).__name__}), so nothing is admitted",
                ) from error
