"""Stopping a turn that waits for a person: a run that goes on with nothing but the end of it.

Its open calls are in the checkpoint and have to be settled, so a run is needed; it decides every open question of the
thread at once, and it ends as stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pizzabot.host.ids import new_run_id
from pizzabot.host.text import to_json
from pizzabot_hookspecs.interrupts import Decision, Interrupt
from pizzabot_hookspecs.storage_backends import NewRun, Run
from pizzabot_hookspecs.wire import JsonValue

_ENDS_TURN = "ends_turn"
STOPPED: JsonValue = {"choice": "stop"}
"""What is kept as the answer of a question that a stop settled."""


def stop_of(waiting: Sequence[Interrupt]) -> tuple[list[Decision], NewRun]:
    """The decisions on everything that waits on one thread, and the run that ends its turn. Nothing is stored yet."""
    answers = {interrupt.interrupt_id: STOPPED for interrupt in waiting}
    run = NewRun(
        run_id=new_run_id(),
        thread_id=waiting[0].thread_id,
        input={"answers": answers},
        options={"config": {}, "resumes": waiting[0].run_id, _ENDS_TURN: True},
        fingerprint=hashlib.sha256(to_json({"thread": waiting[0].thread_id, "answers": answers})).hexdigest(),
    )
    return [Decision(interrupt_id=interrupt_id, answer=STOPPED) for interrupt_id in answers], run


def ends_a_turn(run: Run) -> bool:
    return bool(run.options.get(_ENDS_TURN))


def asked_by(waiting: Sequence[Interrupt], run: Run | None) -> bool:
    """Whether what waits was asked by `run`, or by one that it went on with: the turn that a client sees as its."""
    askers = {interrupt.run_id for interrupt in waiting}
    return run is not None and (run.run_id in askers or run.options.get("resumes") in askers)
