"""What each provider offers: listed side by side, each on its own deadline, kept for a while (spec/06 §2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pizzabot_hookspecs import Logger, PizzabotError
from pizzabot_hookspecs.model_providers import ModelDescriptor, ModelProvider

LISTING_SECONDS = 5.0
KEPT_SECONDS = 30.0
MAX_MODELS = 5000
"""Models of one provider that are shown."""
CODES = frozenset({"credentials", "authentication", "network", "endpoint", "unavailable"})


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One provider's models, and what went wrong when `code` is set; `stale` models are those of an earlier time."""

    use: str
    models: Sequence[ModelDescriptor]
    listed_at: float
    stale: bool = False
    code: str | None = None
    message: str | None = None


class Catalogue:
    """Listings by use. One provider's failure never hides the others; its last good list is served stale."""

    def __init__(self, *, clock: Callable[[], float], logger: Logger, redact: Callable[[str], str] = str) -> None:
        self._clock = clock
        self._redact = redact
        self._logger = logger
        self._kept: dict[str, Listing] = {}
        self._good: dict[str, Sequence[ModelDescriptor]] = {}
        self._under_way: dict[str, asyncio.Task[Listing]] = {}

    async def listing(
        self, use: str, provider: Callable[[], Awaitable[ModelProvider]], *, refresh: bool = False
    ) -> Listing:
        kept = self._kept.get(use)
        if kept is not None and not refresh and self._clock() - kept.listed_at < KEPT_SECONDS:
            return kept
        task = self._under_way.get(use)
        if task is None:
            task = self._under_way[use] = asyncio.create_task(self._list(use, provider), name=f"models of {use}")
            task.add_done_callback(lambda _: self._under_way.pop(use, None))
        return await asyncio.shield(task)

    def known(self, use: str, model: str) -> ModelDescriptor | None:
        """What the last good listing says of a model."""
        return next((found for found in self._good.get(use, ()) if found.id == model), None)

    async def _list(self, use: str, provider: Callable[[], Awaitable[ModelProvider]]) -> Listing:
        try:
            made = await provider()
            async with asyncio.timeout(LISTING_SECONDS):
                models = tuple(await made.models())[:MAX_MODELS]
        except TimeoutError:
            listing = self._failed(use, "network", f"no answer within {LISTING_SECONDS:.0f} s")
        except PizzabotError as error:
            listing = self._failed(use, error.code if error.code in CODES else "unavailable", error.detail)
        except Exception as error:  # noqa: BLE001 - a plugin's error is data; its text may hold secrets and is not passed on
            self._logger.error("models.listing_failed", use=use, cause=type(error).__name__)
            listing = self._failed(use, "unavailable", f"the provider failed with {type(error).__name__}")
        else:
            self._good[use] = models
            listing = Listing(use=use, models=models, listed_at=self._clock())
        self._kept[use] = listing
        return listing

    def _failed(self, use: str, code: str, message: str) -> Listing:
        good = self._good.get(use, ())
        return Listing(
            use=use, models=good, listed_at=self._clock(), stale=bool(good), code=code, message=self._redact(message)
        )
