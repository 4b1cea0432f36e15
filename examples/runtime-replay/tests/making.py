"""What the tests are made with: a runtime in a folder, a logger and a context, without a host."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pizzabot_replay.runtime import ReplayRuntime, create
from pizzabot_replay.settings import ReplaySettings

from pizzabot_hookspecs import Context


class SilentLogger:
    def debug(self, event: str, **facts: Any) -> None: ...

    info = warning = error = exception = debug


class NoSecrets:
    def resolve(self, reference: object, /) -> str:
        raise LookupError(reference)


@asynccontextmanager
async def runtime_in(
    data_root: Path, settings: ReplaySettings, *, clock: Callable[[], float] = time.time
) -> AsyncIterator[ReplayRuntime]:
    """An opened runtime, closed afterwards."""
    context = Context(
        name="replay",
        data_root=data_root,
        logger=SilentLogger(),
        secrets=NoSecrets(),
        clock=clock,
        redact=str,
    )
    async with create(context, settings) as runtime:
        yield runtime
