"""Where a run's files are: its turn's place in its thread."""

from __future__ import annotations

from pizzabot.host.workspace.paths_of_turns import PathsOfTurns
from pizzabot.host.workspace.place import Author, Place
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import Run


def place_of_run(run: Run, turn_id: str, paths: PathsOfTurns) -> Place:
    return Place(
        thread_id=run.thread_id,
        caller=Caller(owner=run.owner),
        turns=paths.of_run(run, turn_id),
        turn_id=turn_id,
        run_id=run.run_id,
        epoch=run.epoch,
        author=Author.AGENT,
    )
