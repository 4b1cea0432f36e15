# ruff: noqa: TID253 - imported behind `runtime.prepare`
"""One eval, from its code to its outcome: steps of the guest in a thread, its calls as tasks of the server's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn, TypeVar

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from pizzabot_builtin_plugins.deepagents_runtime.interpreter import outcomes
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import (
    BRIDGE_STOP_SECONDS,
    EVAL_SECONDS,
    MAX_CONCURRENT_TASKS,
    STOP_SECONDS,
)
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bridges import Returned
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.declarations import redeclarable
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.dispatching import SIGNATURE
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.guest import Answer, Guest, GuestBroken, HostCall
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.outcomes import Outcome
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.refusals import Refused
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.threads import in_thread, retrieved

T = TypeVar("T")

Host = Callable[[HostCall], Awaitable[Returned]]
"""Answers a call of the guest. Raises `Refused` for what is thrown there; any other error is, by its text."""

TASK = SIGNATURE.partition("(")[0]


class Evaluation:
    """`run` once. Whether the sandbox can be used again afterwards is `usable`."""

    def __init__(
        self, guest: Guest, host: Host, *, redact: Callable[[str], str], seconds: float = EVAL_SECONDS
    ) -> None:
        self.usable = False
        self._guest = guest
        self._host = host
        self._redact = redact
        self._seconds = seconds
        self._tasks: dict[asyncio.Task[Answer], HostCall] = {}
        self._dispatching = asyncio.Semaphore(MAX_CONCURRENT_TASKS)
        self._notes: list[str] = []

    async def run(self, code: str) -> Outcome:
        """Raises only what interrupts or cancels the run; then the calls that it waited for are cancelled."""
        try:
            async with asyncio.timeout(self._seconds):
                outcome = await self._driven(code)
            self.usable = True
            return outcome
        except TimeoutError:
            if interruption := self._interruption():
                self.usable = True
                raise interruption from None
            self._guest.stop()
            return outcomes.timed_out(self._guest.said)
        except GuestBroken as error:
            return outcomes.broken(self._guest.said, error.reason)
        except GraphBubbleUp:
            self.usable = True
            raise
        finally:
            await self._cancel_calls()

    async def _driven(self, code: str) -> Outcome:
        guest = self._guest
        self._begin(await self._step(lambda: guest.run(redeclarable(code))))
        while self._tasks:
            finished, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._interruption() is not None:
                await self._others_end()
            answers = [self._answer(task) for task in finished]
            self._begin(await self._step(lambda answers=answers: guest.settle(answers)))  # type: ignore[misc]
        if guest.said.end is None:
            return outcomes.unfinished(guest.said, outcomes.STUCK, self._notes)
        return outcomes.ended(guest.said, guest.said.end, self._notes)

    async def _others_end(self) -> NoReturn:
        """A call interrupts the run. The others at work go on to their own ends before it does.

        Cancelled, a subagent would ask a person again what was answered, and do again what it did. Raises what
        interrupts, all questions together.
        """
        await asyncio.wait(self._tasks)
        interruption = self._interruption()
        assert interruption is not None  # noqa: S101 - what was there stays
        raise interruption

    def _interruption(self) -> GraphBubbleUp | None:
        """What calls have raised to interrupt the run; questions of several as one."""
        errors = [task.exception() for task in self._tasks if task.done() and not task.cancelled()]
        raised = [error for error in errors if isinstance(error, GraphBubbleUp)]
        questions = [error for error in raised if isinstance(error, GraphInterrupt)]
        if len(raised) < 2 or len(questions) < len(raised):
            return next((error for error in raised if error not in questions), raised[0] if raised else None)
        asked = {question.id: question for error in questions for question in error.args[0]}
        return GraphInterrupt(tuple(asked.values()))

    def _begin(self, calls: Sequence[HostCall]) -> None:
        for call in calls:
            task = asyncio.create_task(self._called(call), name=f"eval {call.name}")
            task.add_done_callback(retrieved)
            self._tasks[task] = call

    def _answer(self, task: asyncio.Task[Answer]) -> Answer:
        """What a finished call came to."""
        call = self._tasks.pop(task)
        if task.cancelled():
            return Answer(call.id, thrown=True, value=Refused(f"{call.name} was cancelled").told())
        answer = task.result()
        if answer.thrown and self._guest.said.end is not None:
            self._notes.append(f"{call.name}, which the code did not wait for, failed")
        return answer

    async def _called(self, call: HostCall) -> Answer:
        try:
            returned = await self._hosted(call)
        except GraphBubbleUp:
            raise
        except Refused as error:
            told = {**error.told(), "message": self._redact(str(error.told()["message"]))}
            return Answer(call.id, thrown=True, value=told)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is the guest's to catch
            text = self._redact(str(error)) or type(error).__name__
            return Answer(call.id, thrown=True, value=Refused(text).told())
        if returned.note:
            self._notes.append(f"{call.name}: {returned.note}")
        return Answer(call.id, thrown=False, value=returned.value)

    async def _hosted(self, call: HostCall) -> Returned:
        if call.fault:
            raise Refused(call.fault)
        if call.name != TASK:
            return await self._host(call)
        async with self._dispatching:
            return await self._host(call)

    async def _step(self, work: Callable[[], T]) -> T:
        """A step in a thread. Cancelled, it stops the guest and waits until the thread has left it."""
        future = in_thread(work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._guest.stop()
            await asyncio.wait([future], timeout=STOP_SECONDS)
            raise

    async def _cancel_calls(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=BRIDGE_STOP_SECONDS)
        self._tasks.clear()
