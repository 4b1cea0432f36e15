"""One run, from its claim to its terminal event: frames of the runtime into the log, and what stops them.

The pump owns the order: the `running` frame, what the runtime says, what the host closes, one terminal frame in the
transaction of the status. A stop goes to the runtime first and to the task only when that takes too long. When the
process goes down the run is left as it is: the next start goes on from its checkpoint (durable-runs rule 7).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pizzabot.host.runs.attention import SKIPPED, recovery_interrupt
from pizzabot.host.runs.attention import reason as reason_of
from pizzabot.host.runs.beginning import Beginning, told_before
from pizzabot.host.runs.completion import LogCompletion
from pizzabot.host.runs.facts import CONTEXT, PREFIX, RunFacts
from pizzabot.host.runs.intents import RunIntents
from pizzabot.host.runs.pump_services import PumpServices
from pizzabot.host.runs.questions import Questions
from pizzabot.host.runs.requests import messages_of
from pizzabot.host.runs.stopping import ends_a_turn
from pizzabot.host.runs.terminal import Ending, decide_ending
from pizzabot.host.runs.writer import EventWriter
from pizzabot.host.text import to_json
from pizzabot_hookspecs import SYSTEM, Caller, Conflict, PizzabotError, Unavailable
from pizzabot_hookspecs.agent_runtimes import AgentRun, ChosenModel, KnowsSettledCalls, Turn
from pizzabot_hookspecs.errors import RunErrorCode
from pizzabot_hookspecs.storage_backends import CancelReason, NewEvent, Run, RunStatus
from pizzabot_hookspecs.wire import Frame

STOP_SECONDS = 8.0
"""How long a runtime may take to stop before its iteration is cancelled; below the 10 s that a client waits."""
ABANDON_SECONDS = 2.0
MAX_ATTEMPTS = 3
"""Times a run is begun. Where the process died each time, a person is asked instead of trying again; orderly stops of
the server do not count."""
STORAGE_FAILED = "storage_failed"


class RunPump:
    """`execute` runs one claimed run to its end. `cancel` may be called at any time, more than once."""

    def __init__(self, services: PumpServices, run: Run) -> None:
        self._services = services
        self._run = run
        self._caller = Caller(owner=run.owner)
        self._cancelled: CancelReason | None = CancelReason.STOPPED if ends_a_turn(run) else run.cancel_reason
        self._completion = LogCompletion()
        self._agent_run: AgentRun | None = None
        self._work: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._last_timestamp = 0
        self._first_seq: int | None = None
        self._lost = False
        self._attention: str | None = None
        self._told: frozenset[str] | None = None
        self._facts = RunFacts(run, now=self._now)
        self._questions = Questions(
            services.storage,
            run,
            completion=self._completion,
            facts=self._facts,
            resumes=self.resumes,
            now=self._now,
        )

    async def execute(self) -> Ending | None:
        """The ending that was written, or None when the row was lost to another owner or storage stayed broken."""
        writer = EventWriter(self._services.storage, self._services.hub, self._run, logger=self._services.logger)
        try:
            error = await self._carry_out(writer)
            ending = await self._finish(writer, error)
            self._first_seq = writer.first_seq
            return ending
        except Conflict as lost:
            await self._end_work()
            await writer.abandon()
            self._services.logger.warning("run.lost", run_id=self._run.run_id, code=lost.code, detail=lost.detail)
        except PizzabotError as broken:
            await self._end_work()
            await writer.abandon()
            self._services.logger.error(
                "run.not_written", run_id=self._run.run_id, code=broken.code, detail=str(broken)
            )
        except asyncio.CancelledError:
            await self._end_work()
            await writer.abandon()
            raise
        return None

    @property
    def resumes(self) -> bool:
        """Whether the run goes on with answers: then calls wait in the checkpoint, which a stop has to settle too."""
        return "resumes" in self._run.options

    def row_after(self, ending: Ending | None) -> Run | None:
        """The row as `ending` left it, unless others may have written to it too: then None, and it has to be read."""
        if ending is None or self._cancelled is not None:
            return None
        return replace(
            self._run,
            status=ending.status,
            ended_at=self._services.clock(),
            error_code=ending.error_code,
            error=ending.error,
            first_seq=self._first_seq if self._run.first_seq is None else self._run.first_seq,
        )

    def lose(self) -> None:
        """Stop working and write nothing more: the row is somebody else's now."""
        self._lost = True
        if self._work is not None:
            self._work.cancel()

    def cancel(self, reason: CancelReason) -> None:
        """Stop the run; the first reason stays. Returns at once."""
        if self._cancelled is not None:
            return
        self._cancelled = reason
        if self._work is None or self._work.done():
            return
        if self._agent_run is None:
            self._work.cancel()
        else:
            self._stopping = asyncio.create_task(self._stop(self._agent_run), name=f"stop {self._run.run_id}")

    async def _carry_out(self, writer: EventWriter) -> BaseException | None:
        """Run the turn; what it raised, if it did. Raises only what makes writing impossible."""
        await self._begin(writer)
        recovering = self._run.attempt > 1
        if recovering and await self._needs_attention():
            return None
        if self._cancelled is not None and not recovering and not await self._leaves_something():
            return None
        await self._work_off(writer, settle=self._cancelled is not None)
        unheard = self._cancelled is not None and self._agent_run is None
        if unheard and (recovering or await self._leaves_something()):
            await self._work_off(writer, settle=True)  # it was stopped before the runtime had it
        work = self._work
        if work is None or work.cancelled():
            return None if self._cancelled is not None else asyncio.CancelledError("the turn was cancelled")
        error = work.exception()
        if isinstance(error, Unavailable) and error.code == STORAGE_FAILED and await self._needs_attention():
            return None  # a call may have happened whose result could not be kept: only a person can say
        return error

    async def _leaves_something(self) -> bool:
        """Whether a run that is stopped before it began has to be settled: calls that wait for its answers, or words.

        What somebody said stays in the conversation, also where it was replaced at once; unless a person is asked
        there, whose question a settlement would answer.
        """
        if self.resumes:
            return True
        if not self._run.input.get("messages"):
            return False
        return not await self._services.storage.open_interrupts(self._run.thread_id, limit=1, caller=SYSTEM)

    async def _work_off(self, writer: EventWriter, *, settle: bool) -> None:
        """The turn, until it has ended or was ended; raises only what makes writing impossible."""
        self._work = asyncio.create_task(self._turn(writer, settle=settle), name=f"turn {self._run.run_id}")
        await asyncio.wait({self._work})
        if self._stopping is not None:
            await self._stopping
        if self._lost:
            raise Conflict("lease_lost", f"run {self._run.run_id} was taken over by another server")
        if writer.failure is not None:
            raise writer.failure

    async def _begin(self, writer: EventWriter) -> None:
        beginning = Beginning(
            self._services.storage,
            self._run,
            completion=self._completion,
            facts=self._facts,
            questions=self._questions,
            now=self._now,
        )
        events = await beginning.events()
        if self._goes_on_after_a_crash:
            self._told = await told_before(self._services.storage, self._run, self._completion)
        for event in events:
            await writer.add(event, urgent=True)
        self._services.started(self._run)

    @property
    def _goes_on_after_a_crash(self) -> bool:
        return self._run.attempt > 1 or (self._run.options.get("recovery") or {}).get("choice") is not None

    async def _needs_attention(self) -> bool:
        """Whether calls of this run may have happened and nobody knows; then the person is asked."""
        intents = await self._services.storage.open_intents(self._run.run_id, caller=SYSTEM)
        if intents:
            runtime = await self._services.runtime()
            if isinstance(runtime, KnowsSettledCalls):
                calls = [intent.call_id for intent in intents]
                settled = await runtime.settled_calls(self._run.thread_id, calls, caller=self._caller)
                intents = [intent for intent in intents if intent.call_id not in settled]
        given_up = self._run.attempt - self._run.released > MAX_ATTEMPTS
        if not (intents or given_up) or self._cancelled is not None:  # a stop may have come while this was looked up
            return False
        self._attention = reason_of(intents, attempts=MAX_ATTEMPTS if given_up else None)
        question = recovery_interrupt(intents, self._attention)
        data = {"interrupt_id": question.interrupt_id, "kind": question.kind.value, "payload": question.payload}
        data |= {"value": question.payload}
        self._questions.ask(Frame(method="input.requested", data=data, timestamp=self._now()))
        return True

    async def _turn(self, writer: EventWriter, *, settle: bool) -> None:
        runtime = await self._services.runtime()
        model = await self._model()
        self._facts.uses(model)
        recovery = self._run.options.get("recovery") or {}
        choice = recovery.get("choice")
        turn = Turn(
            run_id=self._run.run_id,
            thread_id=self._run.thread_id,
            caller=self._caller,
            model=model,
            messages=messages_of(self._run.input),
            recover=self._goes_on_after_a_crash,
            told=self._told,
            answers=self._run.input.get("answers") or {},
            skip=dict.fromkeys(recovery.get("calls") or (), SKIPPED) if choice in ("skip", "stop") else {},
            settle=settle or choice == "stop",
            intents=RunIntents(self._services.storage, self._run),
            config=self._run.options.get("config") or {},
            files=await self._services.files(self._run, self._facts.turn_id or f"run:{self._run.run_id}"),
            settings=await self._services.settings(self._caller),
        )
        self._agent_run = runtime.start(turn)
        async for frame in self._agent_run:
            await self._write(writer, frame)

    async def _model(self) -> ChosenModel:
        """The requested model, else the one that was chosen for the thread, else the default (spec/02 §4)."""
        try:
            return await self._resolved_model()
        except PizzabotError as error:
            if error.code.upper() in RunErrorCode.__members__:
                raise
            raise Unavailable(RunErrorCode.MODEL_UNAVAILABLE, error.detail) from error

    async def _resolved_model(self) -> ChosenModel:
        storage = self._services.storage
        wanted = self._run.options.get("model")
        if wanted is not None:
            model = await self._services.models.resolve(wanted)
            await storage.pin_model(self._run.thread_id, model.id, caller=self._caller)
            return model
        thread = await storage.thread(self._run.thread_id, caller=self._caller)
        return await self._services.models.resolve(thread.model_id if thread is not None else None)

    async def _write(self, writer: EventWriter, frame: Frame) -> None:
        if frame.method == "input.requested":
            self._questions.ask(frame)
            return
        data = frame.data
        if self._is_forged(frame):
            return
        self._completion.see(frame.method, frame.namespace, frame.node, data)
        self._last_timestamp = max(self._last_timestamp, frame.timestamp)
        name = data.get("name") if frame.method == "custom" else None
        event = NewEvent(
            method=frame.method,
            data=to_json(data),
            timestamp=self._last_timestamp,
            namespace=frame.namespace,
            node=frame.node,
            name=name if isinstance(name, str) else None,
        )
        await writer.add(event, urgent=data.get("event") != "content-block-delta")
        told = self._facts.see(frame.method, frame.namespace, data)
        if told is not None:
            await writer.add(told, urgent=False)

    def _is_forged(self, frame: Frame) -> bool:
        """Whether a custom frame has a name of the product's own facts, which a runtime does not write."""
        name = frame.data.get("name") if frame.method == "custom" else None
        if not isinstance(name, str) or not name.startswith(PREFIX) or name == CONTEXT:
            return False
        self._services.logger.warning("run.fact_refused", run_id=self._run.run_id, name=name)
        return True

    async def _finish(self, writer: EventWriter, error: BaseException | None) -> Ending:
        ending = decide_ending(
            cancelled=self._cancelled,
            error=error,
            interrupted=bool(self._completion.interrupts),
            attention=self._attention,
            redact=self._services.redact,
        )
        waiting = ending.status in (RunStatus.INTERRUPTED, RunStatus.NEEDS_ATTENTION)
        reason = None if error is None else "the run failed"
        if self._cancelled is not None:
            reason = "aborted"
        last = self._completion.close(reason=reason, now=self._now, keep_tools=waiting)
        if waiting:
            last += await self._questions.asked()
        withdraw = self._gives_up
        if withdraw:
            last += await self._questions.withdrawn()
        if (changes := await self._services.changes(self._run)) is not None:
            last.append(self._facts.changed(changes))
        last.append(self._facts.ends(ending))
        last.append(self._event("lifecycle", to_json(ending.data)))
        await writer.finish(
            last,
            status=ending.status,
            error_code=ending.error_code,
            error=ending.error,
            interrupts=self._completion.interrupts if waiting else (),
            withdraw=withdraw,
        )
        return ending

    @property
    def _gives_up(self) -> bool:
        """Whether the waiting turn was settled: its other open calls were ended too, and their questions with them."""
        choice = (self._run.options.get("recovery") or {}).get("choice")
        return self.resumes and (self._cancelled is not None or choice == "stop")

    async def _stop(self, agent_run: AgentRun) -> None:
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await agent_run.stop()
                if self._work is not None:
                    await asyncio.wait({self._work})
        except Exception as error:  # noqa: BLE001 - a runtime that cannot stop is cut off
            self._services.logger.warning(
                "run.stop_forced", run_id=self._run.run_id, cause=type(error).__name__, detail=str(error)
            )
            if self._work is not None:
                self._work.cancel()

    async def _end_work(self) -> None:
        """Cut the turn off without settling it."""
        tasks = [task for task in (self._work, self._stopping) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=ABANDON_SECONDS)

    def _event(self, method: str, data: bytes) -> NewEvent:
        return NewEvent(method=method, data=data, timestamp=self._now())

    def _now(self) -> int:
        """Milliseconds, never before a frame that is already in the log."""
        self._last_timestamp = max(self._last_timestamp, int(self._services.clock() * 1000))
        return self._last_timestamp
