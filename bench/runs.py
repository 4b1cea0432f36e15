"""What a run costs: the engine on a real SQLite file with a stub runtime, and the real graph beside `langgraph dev`.

    python bench/runs.py [--quick] [--only runs|tokens|replay|observers|real] [--peer-python PATH] [--folder DIR]

The stub is `pizzabot.testing.ScriptedRuntime`. CPU is that of all threads of the process. The peer needs
`pip install "pizzabot-host[bench]"`, in this interpreter or in the one of --peer-python. A full run takes 3 minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from peer.figures import end, figure, machine, spread
from peer.side_by_side import beside

from pizzabot.host.activity import ActivityBoard
from pizzabot.host.conversations import conversations
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.filters import CHANNELS
from pizzabot.host.runs.hub import Hub
from pizzabot.host.runs.policies import Policies
from pizzabot.host.runs.pump_services import PumpServices
from pizzabot.host.runs.use_case import HostRuns
from pizzabot.testing import ScriptedRuntime
from pizzabot.testing.runtime_contract import said, turn
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import AgentRun, ChosenModel, Turn
from pizzabot_hookspecs.host import ClientView, EventFilter
from pizzabot_hookspecs.model_providers import ModelDescriptor
from pizzabot_hookspecs.storage_backends import Run, StoredEvent

AT_ONCE = 200
OBSERVERS = 200
PACE_SECONDS = 0.002
REPLAYED = 10_000
FRAMES_BESIDE_DELTAS = 10
"""running, message-start, content-block-start, content-block-finish, message-finish, completed; and the facts of the
turn, the run's begin and end, and usage"""
PATIENCE_SECONDS = 100.0


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much of everything."""

    runs: int
    tokens: int
    paced_tokens: int
    unpaced_tokens: int
    repeats: int
    rounds: int
    seconds: float
    turns: int


FULL = Effort(
    runs=2000, tokens=20_000, paced_tokens=1000, unpaced_tokens=50_000, repeats=5, rounds=3, seconds=5.0, turns=30
)
QUICK = Effort(
    runs=600, tokens=5000, paced_tokens=500, unpaced_tokens=20_000, repeats=2, rounds=1, seconds=4.0, turns=8
)


class OneModel:
    """Every model there is; nobody calls it."""

    chosen = ChosenModel(
        id="stub:stub",
        chat=None,  # type: ignore[arg-type]
        descriptor=ModelDescriptor(id="stub", display_name="stub"),
    )

    async def resolve(self, _model_id: str | None, /) -> ChosenModel:
        return self.chosen


class PacedRuntime(ScriptedRuntime):
    """A token every `PACE_SECONDS` by its own clock: one that was held up is followed at once by those that are due."""

    def start(self, turn: Turn, /) -> AgentRun:
        return _PacedRun(super().start(turn))


class _PacedRun:
    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self.stop = run.stop

    async def __aiter__(self) -> AsyncIterator[Any]:
        due = time.perf_counter()
        async for frame in self._run:
            if frame.data["event"] == "content-block-delta":
                due += PACE_SECONDS
                if (early := due - time.perf_counter()) > 0:
                    await asyncio.sleep(early)
            yield frame


@dataclass
class Parts:
    runs: HostRuns
    storage: SqliteStorage
    waiting: dict[str, asyncio.Future[None]]

    async def run(self, thread_id: str, text: str = "hello there") -> None:
        """One run from its command to its row that says how it ended."""
        run_id = f"run_{uuid.uuid4().hex}"
        ended = self.waiting[run_id] = asyncio.get_running_loop().create_future()
        params = {"run_id": run_id, "input": {"messages": [{"role": "user", "content": text}]}}
        reply = await self.runs.command(thread_id, {"id": 1, "method": "run.start", "params": params}, caller=LOCAL)
        assert reply.envelope["type"] == "success", reply.envelope
        await ended

    async def events(self, thread_id: str, filter_: EventFilter, since: int | None = None) -> AsyncIterator[Any]:
        stream = await self.runs.observe(thread_id, filter_, since=since, idle_seconds=PATIENCE_SECONDS, caller=LOCAL)
        try:
            async for batch in stream:
                yield batch.events
        finally:
            await stream.aclose()


EVERYTHING = EventFilter(channels=CHANNELS)


@asynccontextmanager
async def assembled(folder: Path, runtime: ScriptedRuntime) -> AsyncIterator[Parts]:
    """The engine as a host puts it together, without plugins and transports."""
    waiting: dict[str, asyncio.Future[None]] = {}

    async def ready() -> ScriptedRuntime:
        return runtime

    def finished(run: Run) -> None:
        waiting.pop(run.run_id).set_result(None)

    async with SqliteStorage(folder) as storage:
        hub, activity = Hub(), ActivityBoard(storage)
        services = PumpServices(
            storage=storage,
            hub=hub,
            models=OneModel(),
            runtime=ready,
            started=lambda _run: None,
            clock=time.time,
            redact=str,
            logger=structlog.wrap_logger(None, processors=[_drop]),
        )
        engine = RunEngine(
            services, server_id="bench", finished=finished, changed=activity.changed, policies=Policies(services.logger)
        )
        made = conversations(
            storage=storage,
            engine=engine,
            hub=hub,
            models=services.models,
            runtime=ready,
            changed=activity.changed,
            clock=time.time,
        )
        yield Parts(made.runs, storage, waiting)
        hub.close()
        await engine.shutdown()


def _drop(_logger: object, _method: str, _event: object) -> Any:
    raise structlog.DropEvent


async def trivial_runs(folder: Path, effort: Effort) -> None:
    took: list[float] = []
    async with assembled(folder, ScriptedRuntime()) as parts:
        for number in range(20):
            await parts.run(f"warm-{number}")
        numbers = iter(range(effort.runs))

        async def client() -> None:
            for number in numbers:
                began = time.perf_counter()
                await parts.run(f"thread-{number}")
                took.append(time.perf_counter() - began)

        began, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
        await asyncio.gather(*(client() for _ in range(AT_ONCE)))
        seconds, cpu, own = (
            time.perf_counter() - began, time.process_time() - cpu, time.thread_time() - own
        )  # fmt: skip
        for number in range(0, effort.runs, 50):
            stored = await parts.storage.events(f"thread-{number}", after=0, limit=100, caller=LOCAL)
            assert is_end(stored[-1])
            assert len(stored) == FRAMES_BESIDE_DELTAS + 2
    rate, each = effort.runs / seconds, cpu / effort.runs * 1e3
    print(f"durable trivial runs, {AT_ONCE} at once: one run {spread(took)}")
    figure("durable trivial runs/s", rate, at_least=300)
    share = f"loop {own / effort.runs * 1e3:.2f}, storage threads {(cpu - own) / effort.runs * 1e3:.2f}"
    figure("CPU per run, ms", each, at_most=2.0, more=share)


async def tokens(folder: Path, effort: Effort) -> None:
    for runtime, count, name in (
        (ScriptedRuntime(words=effort.tokens), effort.tokens, "as fast as the log takes them"),
        (PacedRuntime(words=effort.paced_tokens), effort.paced_tokens, "one every 2 ms"),
    ):
        costs: list[float] = []
        async with assembled(folder / name.split()[0], runtime) as parts:
            for repeat in range(effort.repeats):
                alone = await cpu_of(lambda: stub_alone(runtime))  # noqa: B023
                whole = await cpu_of(lambda: observed(parts, f"t{repeat}", observers=1))  # noqa: B023
                costs.append((whole - alone) / count)
        median = statistics.median(costs) * 1e3
        figure(f"CPU per token, log and one observer, {name}, ms", median, at_most=0.10, more=spread(costs, digits=4))


async def cpu_of(work: Callable[[], Any]) -> float:
    cpu = time.process_time()
    await work()
    return time.process_time() - cpu


async def stub_alone(runtime: ScriptedRuntime) -> None:
    async for _ in runtime.start(turn(OneModel.chosen, said("go"), thread_id="alone")):
        pass


async def observed(parts: Parts, thread_id: str, *, observers: int) -> float:
    """Seconds that a run takes while `observers` read it; raises unless each saw every byte that the log has."""
    heard: list[StoredEvent] = []
    attached = asyncio.Semaphore(0)

    async def listen() -> None:
        stream = await parts.runs.observe(thread_id, EVERYTHING, idle_seconds=PATIENCE_SECONDS, caller=LOCAL)
        attached.release()
        place = 0
        try:
            async for batch in stream:
                assert batch.gap is None
                events = list(batch.events)
                heard.extend(events[len(heard) - place :])  # whoever is first says what the others must hear
                assert heard[place : place + len(events)] == events, f"an observer hears something else at {place}"
                place += len(events)
                if events and is_end(events[-1]):
                    break
        finally:
            await stream.aclose()
        assert place == len(heard)

    listening = [asyncio.create_task(listen()) for _ in range(observers)]
    for _ in listening:
        await attached.acquire()
    began = time.perf_counter()
    await parts.run(thread_id)
    seconds = time.perf_counter() - began
    await asyncio.gather(*listening)
    stored = await parts.storage.events(thread_id, after=0, limit=1_000_000, caller=LOCAL)
    assert not observers or heard == list(stored), "what was heard is not what is stored"
    return seconds


def is_end(event: StoredEvent) -> bool:
    return event.method == "lifecycle" and not event.namespace and b'"running"' not in event.data


async def replay(folder: Path, effort: Effort) -> None:
    async with assembled(folder, ScriptedRuntime(words=REPLAYED - FRAMES_BESIDE_DELTAS)) as parts:
        await parts.run("long")
    for view in (ClientView.JS, ClientView.PYTHON):
        took: list[float] = []
        for _ in range(effort.repeats * 3):
            async with assembled(folder, ScriptedRuntime()) as parts:
                began, count = time.perf_counter(), 0
                async for events in parts.events("long", EventFilter(channels=CHANNELS, view=view), since=0):
                    count += len(events)
                    if count == REPLAYED:
                        break
                took.append(time.perf_counter() - began)
        name = f"replay of {REPLAYED} events after a reopening, {view.value} view, ms"
        figure(name, statistics.median(took) * 1e3, at_most=100, more=spread(took))


async def observers(folder: Path, effort: Effort) -> None:
    """The figure is the paced run's. In the other one nothing ever waits: what observers take, the writer lacks."""
    print(f"{OBSERVERS} observers of one run, each compared with the log event by event, beside none:")
    for runtime, count, name, limit in (
        (PacedRuntime(words=effort.paced_tokens), effort.paced_tokens, "time of a run with a token every 2 ms", 10.0),
        (ScriptedRuntime(words=effort.unpaced_tokens), effort.unpaced_tokens, "throughput of an unpaced run", None),
    ):
        took: dict[int, list[float]] = {0: [], OBSERVERS: []}
        cpu: dict[int, list[float]] = {0: [], OBSERVERS: []}
        async with assembled(folder / name.split()[0], runtime) as parts:
            for repeat in range(effort.rounds + 1):
                for number, times in took.items():
                    before = time.process_time()
                    times.append(await observed(parts, f"t{repeat}-{number}", observers=number))
                    cpu[number].append(time.process_time() - before)
        alone, watched = (statistics.median(times[1:]) for times in took.values())  # the first ones warm up
        idle, busy = (statistics.median(times[1:]) for times in cpu.values())
        more = f"{count / alone:.0f} -> {count / watched:.0f} tokens/s, CPU of all {idle:.2f} -> {busy:.2f} s"
        figure(f"writer slowed, {name}, %", (watched / alone - 1) * 100, at_most=limit, more=more)


STUB: dict[str, Callable[[Path, Effort], Any]] = {
    "runs": trivial_runs, "tokens": tokens, "replay": replay, "observers": observers
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of everything, in less than a minute")
    parser.add_argument("--only", choices=[*STUB, "real"], action="append", help="this part; may be given again")
    parser.add_argument(
        "--peer-python", type=Path, default=Path(sys.executable), help="the interpreter of langgraph dev"
    )
    parser.add_argument("--folder", type=Path, help="where to make temporary data roots; default: the system's")
    arguments = parser.parse_args()
    effort, only = QUICK if arguments.quick else FULL, arguments.only or [*STUB, "real"]
    print(machine())
    sys.setswitchinterval(0.001)  # as the server does (architecture §6)
    for name, part in STUB.items():
        if name in only:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
                asyncio.run(part(Path(temporary), effort))
    if "real" in only:
        beside(arguments.peer_python, rounds=effort.rounds, seconds=effort.seconds, turns=effort.turns)
    print(end())


if __name__ == "__main__":
    main()
