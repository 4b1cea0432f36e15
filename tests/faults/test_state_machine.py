"""Schedules of everything that clients and crashes do: no message, approval or event is lost, doubled or reordered.

`PIZZABOT_SCHEDULES` is the number of schedules, 100 by default; 1,000 take some minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from engine_rig import EVERYTHING, is_end, start
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from machine import Life, Reader

from pizzabot.host.runs.stopping import ends_a_turn
from pizzabot.testing.scripted_runtime import ScriptedMemory
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.interrupts import InterruptKind

SCHEDULES = int(os.environ.get("PIZZABOT_SCHEDULES", "100"))
STEPS = 40
STEP_SECONDS = 25.0
THREADS = ("t", "u")
VERBS = ("short", "three words {}", "tool {}", "tool {}", "approve {}a", "approve {0}a,{0}b", "question {}")
STRATEGIES = ("interrupt", "enqueue", "reject")
threads = st.sampled_from(("t", "t", "t", "u"))
patience = st.booleans()
CHOICES = ("approve", "approve", "reject", "respond")
WRONG = ({}, {"decisions": []}, {"decisions": [{"type": "maybe"}]}, {"choice": "perhaps"}, None)


class Schedules(RuleBasedStateMachine):
    """`admitted` are the runs that were answered for, by thread, in order, with what they said."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="schedule-"))
        self.loop = asyncio.new_event_loop()
        self.memory = ScriptedMemory()
        self.did = []
        self.failure = None
        self.count = 0
        self.admitted = {thread_id: {} for thread_id in THREADS}
        self.queued = {thread_id: [] for thread_id in THREADS}
        self.sent = []
        self.decided = {}
        self.allowed = Counter()
        self.forbidden = set()
        self.log = dict.fromkeys(THREADS, ())
        self.readers = [Reader(thread_id) for thread_id in THREADS for _ in range(2)]
        self.act(self.begin())

    def act(self, work):
        """Do it, unless something failed before: what is drawn must not depend on when a race shows."""

        async def bounded():
            async with asyncio.timeout(STEP_SECONDS):
                await work

        if self.failure is not None:
            work.close()
            return
        try:
            self.loop.run_until_complete(bounded())
        except Exception as failure:
            self.failure = failure

    async def begin(self):
        self.life = Life(self.folder, self.memory, self.did)
        await self.life.begin()

    @property
    def parts(self):
        return self.life.parts

    async def send(self, thread_id, text, **params):
        answer = await start(self.parts, thread_id, text, **params)
        if answer["type"] == "error":
            assert answer["error"] in ("interrupt_pending", "run_active"), answer
            return None
        run_id = answer["result"]["run_id"]
        if run_id not in self.admitted[thread_id]:
            self.admitted[thread_id][run_id] = text
            verb, _, name = text.partition(" ")
            if verb == "tool":
                self.allowed[name] += 1
        return run_id

    async def after(self, wait):
        """Let what was begun go on: until all is quiet, or not at all, so that the next step comes in between."""
        if wait:
            await self.life.quiet()

    @rule(thread_id=threads, verb=st.sampled_from(VERBS), strategy=st.sampled_from(STRATEGIES), wait=patience)
    def start(self, thread_id, verb, strategy, wait):
        self.say(thread_id, verb, strategy, wait)

    @rule(verbs=st.lists(st.sampled_from(VERBS), min_size=1, max_size=4), thread_id=threads, wait=patience)
    def queue(self, verbs, thread_id, wait):
        for verb in verbs:
            self.say(thread_id, verb, "enqueue", wait=False)
        self.act(self.after(wait))

    def say(self, thread_id, verb, strategy, wait):
        self.count += 1
        name, message_id = f"n{self.count}", f"m{self.count}"

        async def scene():
            asked = await self.open(thread_id)
            waiting = {found.interrupt_id for found in asked}
            text = verb.format(name)
            run_id = await self.send(thread_id, text, message_id=message_id, multitask_strategy=strategy)
            if run_id is None:
                assert waiting <= {found.interrupt_id for found in await self.open(thread_id)}
            else:
                self.sent.append((thread_id, text, message_id, strategy, run_id))
                if strategy == "enqueue" and not waiting:
                    self.queued[thread_id].append(run_id)
                await self.see_answered(thread_id, asked, run_id)
            await self.after(wait)

        self.act(scene())

    @rule(thread_id=threads, verb=st.sampled_from(VERBS), strategy=st.sampled_from(STRATEGIES), wait=patience)
    def start_and_kill(self, thread_id, verb, strategy, wait):
        """The server dies with the answer: before the run was claimed, more often than not."""
        self.count += 1

        async def scene():
            if await self.open(thread_id):
                return
            await self.send(thread_id, verb.format(f"n{self.count}"), multitask_strategy=strategy)
            await self.ended(self.life.kill, wait)

        self.act(scene())

    async def see_answered(self, thread_id, asked, run_id):
        """A message may answer the newest question, and nothing else may go away."""
        left = {found.interrupt_id for found in await self.open(thread_id)}
        gone = [found for found in asked if found.interrupt_id not in left]
        run = await self.parts.storage.run(run_id, caller=LOCAL)
        assert [found.kind for found in gone] == [InterruptKind.INPUT] * bool(gone), "a message took an approval away"
        for found in gone:
            assert list(run.input["answers"]) == [found.interrupt_id]
            self.decided[thread_id, found.interrupt_id] = run_id

    @rule(back=st.integers(1, 5), wait=patience)
    def send_again(self, back, wait):
        if len(self.sent) < back:
            return
        thread_id, text, message_id, strategy, run_id = self.sent[-back]

        async def scene():
            again = await start(self.parts, thread_id, text, message_id=message_id, multitask_strategy=strategy)
            assert again["type"] == "success", again
            assert again["result"]["run_id"] == run_id, "the same message became a second run"
            await self.after(wait)

        self.act(scene())

    @rule(choices=st.lists(st.sampled_from(CHOICES), min_size=1, max_size=3), newest=st.booleans(), wait=patience)
    def respond(self, choices, newest, wait):
        async def scene():
            for thread_id in THREADS:
                waiting = await self.open(thread_id)
                for choice, interrupt in zip(choices, reversed(waiting) if newest else waiting, strict=False):
                    await self.answer(thread_id, interrupt, choice)
            await self.after(wait)

        self.act(scene())

    @rule(thread_id=threads, wrong=st.sampled_from(WRONG), again=st.booleans())
    def respond_wrongly(self, thread_id, wrong, again):
        async def scene():
            waiting = await self.open(thread_id)
            known = [name for thread, name in self.decided if thread == thread_id]
            if again and known:
                reply = await self.respond_with(thread_id, known[-1], {"decisions": [{"type": "approve"}]})
                assert reply["error"] == "already_decided", reply
            elif waiting and waiting[0].kind is not InterruptKind.INPUT:
                reply = await self.respond_with(thread_id, waiting[0].interrupt_id, wrong)
                assert (reply["error"], bool(reply["fields"])) == ("invalid_decision", True)
            else:
                reply = await self.respond_with(thread_id, "nobody", wrong)
                assert reply["error"] in ("no_such_interrupt", "no_such_thread"), reply
            assert {one.interrupt_id for one in waiting} <= {one.interrupt_id for one in await self.open(thread_id)}

        self.act(scene())

    @rule(thread_id=threads, pending=st.booleans(), wait=patience)
    def stop(self, thread_id, pending, wait):
        async def scene():
            target = await self.parts.storage.next_pending(thread_id, caller=LOCAL) if pending else None
            run_id = None if target is None else target.run_id
            asked = await self.open(thread_id)
            await self.parts.runs.stop(thread_id, run_id, caller=LOCAL, wait_seconds=0)
            left = {found.interrupt_id for found in await self.open(thread_id)}
            for found in asked:  # on a thread that only waits, a stop ends the turn that asked
                if found.interrupt_id not in left:
                    self.decided[thread_id, found.interrupt_id] = "stopped"
                    self.forbidden.update(one["name"] for one in found.payload.get("action_requests", ()))
            await self.after(wait)

        self.act(scene())

    @rule(times=st.sampled_from((1, 1, 1, 2, 3)), wait=patience)
    def let_go(self, times, wait):
        async def scene():
            for time in range(times):
                for run_id in list(self.life.runtime.standing):
                    self.life.runtime.let_go(run_id)
                await self.after(wait or time < times - 1)

        self.act(scene())

    @rule(which=st.integers(0, 3))
    def connect_or_disconnect(self, which):
        reader = self.readers[which]
        if reader.connected:
            self.act(reader.disconnect())
        elif self.log[reader.thread_id]:
            self.act(reader.connect(self.life, EVERYTHING))

    @rule(wait=patience)
    def kill(self, wait):
        self.act(self.ended(self.life.kill, wait))

    @rule(wait=patience)
    def restart(self, wait):
        self.act(self.ended(self.life.shut_down, wait))

    async def ended(self, end, wait):
        """One life is over and the next begins; clients have to connect again."""
        await end()
        for reader in self.readers:
            await reader.disconnect()
        await self.begin()
        await self.after(wait)

    async def open(self, thread_id):
        return await self.parts.storage.open_interrupts(thread_id, caller=LOCAL)

    async def respond_with(self, thread_id, interrupt_id, response):
        params = {"interrupt_id": interrupt_id, "response": response}
        body = {"id": 1, "method": "input.respond", "params": params}
        return (await self.parts.runs.command(thread_id, body, caller=LOCAL)).envelope

    async def answer(self, thread_id, interrupt, choice):
        if interrupt.kind is InterruptKind.APPROVAL:
            response = {"decisions": [{"type": choice, "message": "no"} if choice == "respond" else {"type": choice}]}
            name = interrupt.payload["action_requests"][0]["name"]
            if choice == "approve":
                self.allowed[name] += 1
            else:
                self.forbidden.add(name)
        elif interrupt.kind is InterruptKind.INPUT:
            response = "an answer"
        else:
            chosen = {"approve": "retry", "reject": "skip", "respond": "stop"}[choice]
            response = {"choice": chosen}
            for action in interrupt.payload["actions"]:
                self.allowed[action["tool"]] += chosen == "retry"
        reply = await self.respond_with(thread_id, interrupt.interrupt_id, response)
        assert reply["type"] == "success", reply
        self.decided[thread_id, interrupt.interrupt_id] = response
        self.admitted[thread_id][reply["result"]["run_id"]] = f"answer {interrupt.interrupt_id}"

    @invariant()
    def nothing_is_lost_doubled_or_reordered(self):
        self.act(self.check_all())

    async def check_all(self):
        for thread_id in THREADS:
            await self.check(thread_id)
        done = Counter(self.did)
        assert done <= self.allowed, f"a tool ran too often: {done - self.allowed}"
        assert not self.forbidden & set(done), "a rejected call ran"

    async def check(self, thread_id):
        storage = self.parts.storage
        log = tuple(await storage.events(thread_id, after=0, limit=100_000, caller=LOCAL))
        assert log[: len(self.log[thread_id])] == self.log[thread_id], "an event was lost or changed"
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        self.log[thread_id] = log
        await self.see_stops(thread_id, log)
        runs = [await storage.run(run_id, caller=LOCAL) for run_id in self.admitted[thread_id]]
        assert None not in runs, "an admitted message was lost"
        unfinished = await storage.unfinished_runs(caller=LOCAL)  # one look: between two, one ends and one begins
        assert sum(run.status.active for run in unfinished if run.thread_id == thread_id) <= 1
        # The log was read first: what ended since then has its end in the log that is read next.
        ended = {run.run_id for run in runs if run.status.final}
        later = await self.events(thread_id)
        await self.see_stops(thread_id, later)
        ends = Counter(event.run_id for event in later if is_end(event))
        assert set(ends.values()) <= {1}, "a run ended twice"
        assert ended <= set(ends), "a run is final and its readers do not know"
        assert set(ends) <= set(self.admitted[thread_id]), "a run that nobody asked for"
        queued = [run for run in runs if run.run_id in self.queued[thread_id] and "resumes" not in run.options]
        begun = [run.first_seq for run in queued if run.first_seq is not None]
        assert begun == sorted(begun), "queued messages changed their order"
        now = await self.events(thread_id)
        await self.see_stops(thread_id, now)
        known = {run_id: await storage.run(run_id, caller=LOCAL) for run_id in self.admitted[thread_id]}
        check_nobody_is_passed_over(now, known)
        seen = [list(reader.seen) for reader in self.readers if reader.thread_id == thread_id]
        log = await self.events(thread_id)
        for events in seen:  # taken before the log was read: what is shown is stored already
            assert events == list(log[: len(events)])
        for found in await storage.open_interrupts(thread_id, caller=LOCAL):
            assert (thread_id, found.interrupt_id) not in self.decided, "a decided question is open again"

    async def see_stops(self, thread_id, log):
        """The runs that ended a turn which only waited: nobody else admitted those."""
        for run_id in {event.run_id for event in log} - set(self.admitted[thread_id]):
            if ends_a_turn(await self.parts.storage.run(run_id, caller=LOCAL)):
                self.admitted[thread_id][run_id] = "stop"

    async def events(self, thread_id):
        return await self.parts.storage.events(thread_id, after=0, limit=100_000, caller=LOCAL)

    def teardown(self):
        self.act(self.to_the_end())
        self.act(self.check_all())
        failure, self.failure = self.failure, None
        self.act(self.life.shut_down())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        shutil.rmtree(self.folder)
        if failure is not None:
            raise failure

    async def to_the_end(self):
        """Everything is let go and answered: then every run has ended, and every reader has the whole log."""
        self.life.runtime.open = True
        for _ in range(100):
            for run_id in list(self.life.runtime.standing):
                self.life.runtime.let_go(run_id)
            await self.life.quiet()
            waiting = [(thread_id, one) for thread_id in THREADS for one in await self.open(thread_id)]
            if not waiting:
                break
            await self.answer(*waiting[0], "approve")
        assert await self.parts.storage.unfinished_runs(caller=LOCAL) == []
        for reader in self.readers:
            await self.read_all(reader)
        for thread_id in THREADS:
            answer = await start(self.parts, thread_id, "hello")
            assert answer["type"] == "success", answer
            self.admitted[thread_id][answer["result"]["run_id"]] = "hello"
        await self.life.quiet()

    async def read_all(self, reader):
        log = await self.events(reader.thread_id)
        if not log:
            return
        await reader.disconnect()
        if len(reader.seen) < len(log):
            await reader.connect(self.life, EVERYTHING)
            await reader.has(len(log))
        assert [json.loads(event.data) for event in reader.seen] == [json.loads(event.data) for event in log]
        await reader.disconnect()


def check_nobody_is_passed_over(log, runs):
    """While a person is asked no message reaches the model: only what they decided goes on."""
    asked, asks, answered, begun = set(), set(), set(), {}
    for event in log:
        if event.run_id not in runs:
            continue  # admitted since the runs were read
        if event.name is not None and event.name.startswith("pizzabot."):
            continue  # a run that is ended before it went on, replaced or stopped, has its turn told all the same
        if event.method == "lifecycle" and not is_end(event):
            begun[event.run_id] = frozenset(asked)
            asks = set()
        elif event.method == "input.requested":
            asks.add(json.loads(event.data)["interrupt_id"])
        elif event.method == "input.answered":
            answered |= set(json.loads(event.data)["interrupt_ids"])
            asked -= answered
        elif is_end(event):
            data = json.loads(event.data)
            if (data["event"], data.get("code")) in (("interrupted", None), ("failed", "NEEDS_ATTENTION")):
                asked |= asks - answered  # a decision that was stopped: asked again, and decided all the same
        elif begun[event.run_id] and "resumes" not in runs[event.run_id].options:
            raise AssertionError(f"{event.run_id} went on while {sorted(begun[event.run_id])} waited for a person")


@pytest.mark.timeout(900)  # 15 s on a machine that has nothing else to do; it is many tests, not a slow one
def test_no_schedule_loses_doubles_or_reorders_anything():
    run_state_machine_as_test(
        Schedules,
        settings=settings(
            max_examples=SCHEDULES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
