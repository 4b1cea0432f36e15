"""Intents of one claimed run, as a runtime is handed them: announced before a tool runs, fenced by the run's epoch."""

from __future__ import annotations

from pizzabot_hookspecs import SYSTEM
from pizzabot_hookspecs.storage_backends import InterruptStorage, Run
from pizzabot_hookspecs.support.patience import patiently
from pizzabot_hookspecs.wire import Namespace


class RunIntents:
    """Implements `pizzabot_hookspecs.interrupts.IntentLog`; the docstrings are there."""

    def __init__(self, storage: InterruptStorage, run: Run) -> None:
        self._storage = storage
        self._run = run

    async def open(self, call_id: str, /, *, tool: str, namespace: Namespace) -> None:
        run = self._run
        await patiently(
            lambda: self._storage.open_intent(
                run.run_id, run.epoch, call_id=call_id, tool=tool, namespace=namespace, caller=SYSTEM
            )
        )

    async def close(self, call_id: str, /) -> None:
        run = self._run
        await patiently(lambda: self._storage.close_intent(run.run_id, run.epoch, call_id, caller=SYSTEM))
