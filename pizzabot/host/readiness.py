"""What is loaded behind the listener: the runtime's stack and the default model. A turn waits, `/ping` does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum

from pizzabot_hookspecs import Logger, PizzabotError, Unavailable
from pizzabot_hookspecs.wire import JsonValue


class Readiness(StrEnum):
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Background:
    """One thing that is prepared in the background, once; `ready` waits for it and raises what went wrong."""

    def __init__(
        self,
        name: str,
        prepare: Callable[[], Awaitable[None]],
        *,
        logger: Logger,
        clock: Callable[[], float],
        redact: Callable[[str], str] = str,
    ) -> None:
        self._name = name
        self._prepare = prepare
        self._logger = logger
        self._clock = clock
        self._redact = redact
        self._task: asyncio.Task[None] | None = None
        self.state = Readiness.LOADING
        self.error: PizzabotError | None = None
        self.seconds: float | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"prepare {self._name}")

    async def ready(self) -> None:
        """Until it is prepared. Raises the `PizzabotError` that made it fail."""
        if self._task is None:
            raise Unavailable("not_started", f"{self._name} is not started")
        if not self._task.done():
            await asyncio.shield(self._task)
        if self.error is not None:
            raise self.error

    async def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def to_json(self) -> dict[str, JsonValue]:
        told: dict[str, JsonValue] = {"name": self._name, "state": self.state.value}
        if self.seconds is not None:
            told["seconds"] = round(self.seconds, 3)
        if self.error is not None:
            told |= {"code": self.error.code, "detail": self._redact(self.error.detail)}
        return told

    async def _run(self) -> None:
        began = self._clock()
        try:
            await self._prepare()
        except PizzabotError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and the rest goes on
            self._failed(Unavailable(f"{self._name}_failed", f"{self._name} failed: {type(error).__name__}: {error}"))
        else:
            self.state = Readiness.READY
            self.seconds = self._clock() - began
            self._logger.info("background.ready", part=self._name, seconds=round(self.seconds, 3))

    def _failed(self, error: PizzabotError) -> None:
        self.state, self.error = Readiness.FAILED, error
        self._logger.error("background.failed", part=self._name, code=error.code, detail=error.detail)
