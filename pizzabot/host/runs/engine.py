"""The run engine: admission, answers, stop, quiet and shutdown, against the storage Protocol.

A run exists because its row does; `drivers.py` carries out what rows say (durable-runs rules 1, 7, 8).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from pizzabot.host.runs.answers import accepts_text
from pizzabot.host.runs.drivers import Changed, Drivers, KnownRun
from pizzabot.host.runs.leases import LeaseKeeper
from pizzabot.host.runs.merging import Merger
from pizzabot.host.runs.policies import Policies
from pizzabot.host.runs.pump_services import PumpServices
from pizzabot.host.runs.requests import RunRequest, new_run_of
from pizzabot.host.runs.responding import Responses, known_resume, prepare_resume
from pizzabot.host.runs.stopping import asked_by, stop_of
from pizzabot_hookspecs import SYSTEM, Caller, Conflict, NotFound, PizzabotError, Unavailable
from pizzabot_hookspecs.admission_policies import AdmissionRequest
from pizzabot_hookspecs.host import StopOutcome
from pizzabot_hookspecs.storage_backends import Admission, CancelReason, NewRun, Run, RunStatus

SHUTDOWN_SECONDS = 5.0
REPLACED_SECONDS = 10.0
"""Longest wait of a `run.start` for the end of the run that it replaces; it is answered all the same then."""


class RunEngine:
    """Owned by one host, used from its loop only."""

    def __init__(
        self,
        services: PumpServices,
        *,
        server_id: str,
        finished: Callable[[Run], None],
        changed: Changed,
        policies: Policies,
    ) -> None:
        self.drivers = Drivers(services, server_id=server_id, finished=finished, changed=changed)
        self._storage = services.storage
        self._logger = services.logger
        self._server_id = server_id
        self._changed = changed
        self._fenced: set[str] = set()
        self._closing = False
        self._policies = policies
        self._leases = LeaseKeeper(
            services.storage,
            server_id=server_id,
            claimed=self.drivers.claimed,
            lose=self.drivers.lose,
            take_over=self.drivers.look_for_orphans,
            clock=services.clock,
            logger=services.logger,
        )
        self._merger = Merger(services.storage, clock=services.clock, logger=services.logger)

    def start(self) -> None:
        """Begin what goes on beside the runs: leases and merging."""
        self._leases.start()
        self._merger.start()

    @property
    def active(self) -> int:
        """Runs that are pumped or wait for a slot here."""
        return len(self.drivers.running)

    async def admit(self, request: RunRequest, *, caller: Caller) -> Admission:
        """Store the run, wake its thread's driver, ask the run that it replaces to stop. Waits for neither."""
        self._check_open(request.thread_id)
        new = new_run_of(request)
        answering = await self._answer_by_message(request, new, caller=caller)
        if answering is not None:
            return answering
        try:
            characters = sum(len(message.text) for message in request.messages)
            await self._check_policies(request.thread_id, characters, request.model, caller=caller)
        except PizzabotError:
            known = await self._storage.known_request(new, caller=caller)
            if known is None:
                raise
            return known  # what is sent again asks for nothing more
        admission = await self._storage.admit_run(new, caller=caller)
        if admission.created:
            self._logger.info(
                "run.admitted", run_id=admission.run.run_id, thread_id=request.thread_id, messages=len(request.messages)
            )
            self.drivers.know(admission.run.run_id)
            if admission.replaces is not None:
                self.drivers.cancel(admission.replaces.run_id, CancelReason.SUPERSEDED)
            self.drivers.kick(request.thread_id, admission.run.run_id)
            self._changed(caller.owner, request.thread_id)
        return admission

    async def last_before(self, admission: Admission, *, caller: Caller) -> int:
        """The thread's last event before the run's first, once the run that it replaces has ended in the log.

        A client that opens its stream when `run.start` is answered takes the first end that it is shown for that of
        its own run, so the answer waits for the older one (wire.md §2, §3.3), at most `REPLACED_SECONDS`.
        """
        if admission.replaces is None:
            return admission.last_seq
        known = self.drivers.running.get(admission.replaces.run_id)
        if known is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPLACED_SECONDS):
                    await known.settled.wait()
        bounds = await self._storage.log_bounds(admission.run.thread_id, caller=caller)
        run = await self._storage.run(admission.run.run_id, caller=caller)
        return bounds.last_seq if run is None or run.first_seq is None else run.first_seq - 1

    async def respond(self, thread_id: str, responses: Responses, *, caller: Caller) -> Admission:
        """Check answers, decide their interrupts and admit the run that goes on: all of it or nothing (rule 9)."""
        self._check_open(thread_id)
        try:
            decisions, resume = await prepare_resume(self._storage, thread_id, responses, caller=caller)
        except (NotFound, Conflict):
            known = await known_resume(self._storage, thread_id, responses, caller=caller)
            if known is None:
                raise
            return known  # a resent answer is not told that it was decided already
        await self._check_policies(thread_id, 0, resume.options.get("model"), caller=caller, resume=True)
        admission = await self._storage.decide(decisions, resume, by=caller.owner, caller=caller)
        if admission.created:
            decided = [decision.interrupt_id for decision in decisions]
            self._logger.info("run.decided", run_id=admission.run.run_id, thread_id=thread_id, interrupts=decided)
            self.drivers.know(admission.run.run_id)
            self.drivers.kick(thread_id)
            self._changed(caller.owner, thread_id, inbox=True)
        return admission

    async def _answer_by_message(self, request: RunRequest, new: NewRun, *, caller: Caller) -> Admission | None:
        """A plain message answers the newest question when nothing but questions is open (durable-runs rule 10).

        One that is sent again does not: it may be the message that led to the question, or the answer to an older one.
        """
        if request.config.get("checkpoint_id") is not None:
            return None  # a fork says something elsewhere
        waiting = await self._storage.open_interrupts(request.thread_id, caller=caller)
        if not waiting or not request.messages or not all(accepts_text(interrupt) for interrupt in waiting):
            return None
        known = await self._storage.known_request(new, caller=caller)
        if known is not None:
            return known
        if any(part["type"] == "file" for message in request.messages for part in message.parts):
            detail = f"thread {request.thread_id} waits for the answer to a question, and a file cannot be one"
            open_ones = ",".join(interrupt.interrupt_id for interrupt in waiting)
            raise Conflict(
                "interrupt_pending",
                f"{detail}; answer in words, then send the file",
                fields={"interrupt_ids": open_ones},
            )
        pair = (waiting[-1].interrupt_id, "\n\n".join(message.text for message in request.messages))
        responses = Responses(
            pairs=[pair],
            run_id=request.run_id,
            idempotency_key=request.idempotency_key,
            message_id=request.message_id,
            fingerprint=request.fingerprint,
        )
        return await self.respond(request.thread_id, responses, caller=caller)

    async def _check_policies(
        self, thread_id: str, characters: int, model: str | None, *, caller: Caller, resume: bool = False
    ) -> None:
        if not self._policies.names():
            return
        waiting = await self._storage.waiting_runs(thread_id, caller=caller)
        await self._policies.check(
            AdmissionRequest(
                caller=caller, thread_id=thread_id, characters=characters, waiting=waiting, model=model, resume=resume
            )
        )

    async def stop(self, thread_id: str, run_id: str | None, *, caller: Caller, wait_seconds: float) -> StopOutcome:
        """The cancel is a row first and a wake-up second; a stale run id touches nothing (durable-runs rule 8)."""
        target = await self._target(thread_id, run_id, caller=caller)
        if target is None:
            known = await self._end_waiting_turn(thread_id, run_id, caller=caller)
            if known is None:
                return StopOutcome.NO_RUN
        else:
            run = await self._storage.request_cancel(target.run_id, reason=CancelReason.STOPPED, caller=caller)
            if run is None:
                return StopOutcome.NO_RUN
            self._logger.info("run.cancel_requested", run_id=run.run_id, thread_id=thread_id)
            known = self.drivers.cancel(run.run_id, CancelReason.STOPPED)
            if run.status is RunStatus.PENDING:
                self.drivers.kick(thread_id, run.run_id)  # it may wait behind a question, where no driver is at work
        if known is None:
            return StopOutcome.PENDING
        if wait_seconds <= 0:
            return StopOutcome.CANCELLED if known.settled.is_set() else StopOutcome.PENDING
        try:
            async with asyncio.timeout(wait_seconds):
                await known.settled.wait()
        except TimeoutError:
            return StopOutcome.PENDING
        return StopOutcome.CANCELLED

    async def _end_waiting_turn(self, thread_id: str, run_id: str | None, *, caller: Caller) -> KnownRun | None:
        """A turn that waits for a person and has no run: the one that ends it. None where nothing waits.

        A stop by id has to be that of a run of this turn. Whoever answers at the same moment wins.
        """
        waiting = await self._storage.open_interrupts(thread_id, caller=caller)
        if not waiting:
            return None
        if run_id is not None and not asked_by(waiting, await self._storage.run(run_id, caller=caller)):
            return None
        decisions, run = stop_of(waiting)
        try:
            await self._storage.decide(decisions, run, by=caller.owner, caller=caller)
        except Conflict:
            return None
        self._logger.info("run.turn_ended", run_id=run.run_id, thread_id=thread_id, interrupts=len(waiting))
        known = self.drivers.know(run.run_id)
        self.drivers.kick(thread_id)
        self._changed(caller.owner, thread_id, inbox=True)
        return known

    async def recover(self) -> int:
        """Go on with what a crash or a shutdown left unfinished; how many runs there are."""
        return await self.drivers.recover()

    async def fence(self, thread_id: str) -> None:
        """Refuse new runs of a thread, stop the ones there are and wait for them: before its deletion."""
        self._fenced.add(thread_id)
        for waiting in await self._storage.unfinished_runs(caller=SYSTEM):
            if waiting.thread_id == thread_id:  # those behind a question, too
                await self._storage.request_cancel(waiting.run_id, reason=CancelReason.STOPPED, caller=SYSTEM)
        while (run := await self._target(thread_id, None, caller=SYSTEM)) is not None:
            known = self.drivers.running.get(run.run_id)
            await self._storage.request_cancel(run.run_id, reason=CancelReason.STOPPED, caller=SYSTEM)
            self.drivers.cancel(run.run_id, CancelReason.STOPPED)
            if run.status is RunStatus.PENDING:
                self.drivers.kick(thread_id, run.run_id)
            if known is None:
                break
            await known.settled.wait()

    def unfence(self, thread_id: str) -> None:
        self._fenced.discard(thread_id)

    @contextlib.contextmanager
    def reserved(self, thread_id: str) -> Iterator[None]:
        """No run of a thread that is being made is admitted inside. Raises `Conflict` `thread_busy`."""
        self._check_open(thread_id)
        self._fenced.add(thread_id)
        try:
            yield
        finally:
            self._fenced.discard(thread_id)

    @asynccontextmanager
    async def quiet(self, thread_id: str) -> AsyncIterator[None]:
        """Like `still`; raises `Conflict` `interrupt_pending` besides, while a person is asked."""
        async with self.still(thread_id):
            if waiting := await self._storage.open_interrupts(thread_id, caller=SYSTEM):
                ids = ",".join(found.interrupt_id for found in waiting)
                detail = "this thread waits for a person; answer that first"
                raise Conflict("interrupt_pending", detail, fields={"interrupt_ids": ids})
            yield

    @asynccontextmanager
    async def still(self, thread_id: str) -> AsyncIterator[None]:
        """No run of the thread begins inside; those that are admitted meanwhile begin behind it.

        Raises `Conflict` `thread_busy` while one is not final (rule 12). A message that waits behind a question is
        not: it cannot begin.
        """
        if not self.drivers.hold(thread_id):
            raise Conflict("thread_busy", f"the state of thread {thread_id!r} is being written; try again in a moment")
        try:
            run = await self._target(thread_id, None, caller=SYSTEM)
            if run is not None:
                detail = f"run {run.run_id} of this thread is {run.status.value}: stop it, or wait"
                raise Conflict("thread_busy", detail)
            await self.drivers.when_at_rest(thread_id)
            yield
        finally:
            self.drivers.let_go(thread_id)

    async def shutdown(self) -> None:
        """Take no more runs and let go of those under way: their rows stay, and the next start goes on with them."""
        self._closing = True
        self.drivers.take_no_more()
        await self._leases.stop()
        await self._merger.stop()
        await self.drivers.close(seconds=SHUTDOWN_SECONDS)
        try:
            async with asyncio.timeout(SHUTDOWN_SECONDS):
                await self._storage.release_runs(self._server_id, caller=SYSTEM)
        except (PizzabotError, TimeoutError) as error:  # then they count as lost in a crash
            self._logger.error("run.not_released", cause=type(error).__name__, detail=str(error))

    async def when_idle(self) -> None:
        """Until the runs that are active now have settled."""
        for known in list(self.drivers.running.values()):
            await known.settled.wait()

    def _check_open(self, thread_id: str) -> None:
        if self._closing:
            raise Unavailable("shutting_down", "the server is shutting down: send it again when it is back")
        if thread_id in self._fenced:
            raise Conflict("thread_busy", f"thread {thread_id!r} is being made or deleted")

    async def _target(self, thread_id: str, run_id: str | None, *, caller: Caller) -> Run | None:
        if run_id is None:
            return await self._storage.active_run(thread_id, caller=caller) or await self._storage.next_pending(
                thread_id, caller=caller
            )
        run = await self._storage.run(run_id, caller=caller)
        return run if run is not None and run.thread_id == thread_id and not run.status.final else None
