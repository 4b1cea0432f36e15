"""Plugin `run_log`: an observer that logs the beginning and the end of every run. Never what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.observers import Observer


@hookimpl
def pizzabot_observers() -> list[Offer[Observer]]:
    from pizzabot_builtin_plugins.run_log.observer import create

    return [Offer(name="run-log", summary="logs the start, the end and the failure of runs", create=create)]
