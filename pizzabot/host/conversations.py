"""Threads, runs and transcripts put together on one engine: what a host hands to transports, and a test to itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pizzabot.host.runs.commands import Commands
from pizzabot.host.runs.drivers import Changed
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.hub import Hub
from pizzabot.host.runs.pump_services import Models
from pizzabot.host.runs.use_case import HostRuns
from pizzabot.host.threads.use_case import HostThreads
from pizzabot.host.transcripts.branches import Branches
from pizzabot.host.transcripts.branching import Branching
from pizzabot.host.transcripts.export import Exporter
from pizzabot.host.transcripts.reading import TranscriptReader
from pizzabot.host.transcripts.thread_log import ThreadLog
from pizzabot.host.transcripts.use_case import HostTranscripts
from pizzabot.host.transcripts.written_messages import WrittenMessages
from pizzabot.host.workspace.parts import FileParts
from pizzabot_hookspecs.agent_runtimes import AgentRuntime
from pizzabot_hookspecs.storage_backends import Storage


@dataclass(frozen=True, kw_only=True)
class Conversations:
    threads: HostThreads
    runs: HostRuns
    transcripts: HostTranscripts


def conversations(
    *,
    storage: Storage,
    engine: RunEngine,
    hub: Hub,
    models: Models,
    runtime: Callable[[], Awaitable[AgentRuntime]],
    changed: Changed,
    clock: Callable[[], float],
    behind: Callable[[str], None] = lambda _thread_id: None,
    redact: Callable[[str], str] = str,
    reader: TranscriptReader | None = None,
    files: FileParts | None = None,
) -> Conversations:
    """The use cases on an engine. `runtime` waits until the agent runtime is prepared; `behind` hears of threads whose
    log is long behind their rows. Without `files` threads have none."""
    log = ThreadLog(storage, hub, clock=clock)
    reader = reader or TranscriptReader(storage, behind=behind)
    threads = HostThreads(
        storage=storage,
        engine=engine,
        hub=hub,
        runtime=runtime,
        changed=changed,
        written=WrittenMessages(storage, log),
        forget=reader.forget,
        redact=redact,
        deleting=None if files is None else files.belongings.deleting,
    )
    in_messages = None if files is None else files.in_messages
    commands = Commands(engine, threads, Branching(storage, reader, runtime), in_messages)
    branches = Branches(
        storage=storage,
        engine=engine,
        turns=reader,
        log=log,
        models=models,
        runtime=runtime,
        changed=changed,
        files=None if files is None else files.belongings,
    )
    return Conversations(
        threads=threads,
        runs=HostRuns(engine=engine, commands=commands, storage=storage, hub=hub, clock=clock),
        transcripts=HostTranscripts(reader, branches, Exporter(reader, storage)),
    )
