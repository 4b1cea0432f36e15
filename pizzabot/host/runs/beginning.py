"""What a run's log begins with, and what it goes on with when the run is begun once more after a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pizzabot.host.runs.completion import LogCompletion
from pizzabot.host.runs.facts import RunFacts
from pizzabot.host.runs.questions import Questions
from pizzabot.host.runs.responding import answers_of
from pizzabot.host.runs.terminal import running
from pizzabot.host.runs.turns import turn_of
from pizzabot.host.text import to_json
from pizzabot_hookspecs import SYSTEM
from pizzabot_hookspecs.storage_backends import NewEvent, Run, Storage, StoredEvent

_PAGE = 512


class Beginning:
    """The first events of one claimed run."""

    def __init__(
        self,
        storage: Storage,
        run: Run,
        *,
        completion: LogCompletion,
        facts: RunFacts,
        questions: Questions,
        now: Callable[[], int],
    ) -> None:
        self._storage = storage
        self._run = run
        self._completion = completion
        self._facts = facts
        self._questions = questions
        self._now = now

    async def events(self) -> list[NewEvent]:
        """To be written together. Storage is read before anything is written, so that they can be."""
        known = await self._so_far() if self._run.attempt > 1 else []
        return self._once_more(known) if known else await self._first()

    async def _first(self) -> list[NewEvent]:
        """`running`, what was decided, the turn where it is new, and the run itself."""
        facts = self._facts
        turn = await turn_of(self._storage, self._run)
        began = NewEvent(method="lifecycle", data=to_json(running()), timestamp=self._now())
        decided = await self._questions.decided(list(answers_of(self._run)))
        events = [began, *decided]
        if turn.new:
            said = facts.turn(turn.turn_id, parent_id=turn.parent_id, source=turn.source, message=turn.message)
            events.append(said)
        return [*events, facts.begins(turn.turn_id)]

    def _once_more(self, known: Sequence[StoredEvent]) -> list[NewEvent]:
        """The end of what the dead process left open."""
        for event in known:
            if _matters(event):
                data = json.loads(event.data)
                self._completion.see(event.method, event.namespace, event.node, data)
                self._facts.see(event.method, event.namespace, data)
        closed = self._completion.close(reason="the server was restarted", now=self._now)
        return [*closed, self._facts.begins(self._facts.turn_id or f"run:{self._run.run_id}")]

    async def _so_far(self) -> Sequence[StoredEvent]:
        return await _log_of(self._storage, self._run)


async def told_before(storage: Storage, run: Run, completion: LogCompletion) -> frozenset[str] | None:
    """The ids of messages and calls that the log holds to their end, for a run that is begun once more: `Turn.told`.

    Those of the runs that asked are among them as far back as one that has said something. None where it is not known
    what of the state is this turn's.
    """
    has_begun = bool(run.input.get("messages"))
    said, called, seen = set(completion.said), set(completion.called), {run.run_id}
    while not said and isinstance(asked := run.options.get("resumes"), str) and asked not in seen:
        seen.add(asked)
        found = await storage.run(asked, caller=SYSTEM)
        if found is None:
            break
        run, earlier = found, LogCompletion()
        for event in await _log_of(storage, run):
            if _matters(event):
                earlier.see(event.method, event.namespace, event.node, json.loads(event.data))
        said |= earlier.said
        called |= earlier.called
    return frozenset(said | called) if said or has_begun else None


def _matters(event: StoredEvent) -> bool:
    return b'"content-block-delta"' not in event.data[:200]


async def _log_of(storage: Storage, run: Run) -> Sequence[StoredEvent]:
    known: list[StoredEvent] = []
    if run.first_seq is None:
        return known
    after = run.first_seq - 1
    while page := await storage.events(run.thread_id, after=after, limit=_PAGE, caller=SYSTEM):
        known += [event for event in page if event.run_id == run.run_id]
        after = page[-1].seq
    return known
