"""A run engine on a real SQLite file and a scripted runtime, without plugins and without a transport."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import structlog

from pizzabot.host.activity import ActivityBoard
from pizzabot.host.conversations import conversations
from pizzabot.host.files.pool import FilePool
from pizzabot.host.ids import uuid7
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.filters import CHANNELS
from pizzabot.host.runs.hub import Hub
from pizzabot.host.runs.policies import Policies
from pizzabot.host.runs.pump_services import PumpServices
from pizzabot.host.transcripts.reading import TranscriptReader
from pizzabot.host.workspace.parts import FileParts
from pizzabot.host.workspace.use_case import HostWorkspace
from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_hookspecs.host import EventFilter
from pizzabot_hookspecs.model_providers import ModelDescriptor


def _drop(_logger, _method, _event):
    raise structlog.DropEvent


_LOGGER = structlog.wrap_logger(None, processors=[_drop])
EVERYTHING = EventFilter(channels=CHANNELS)


class OneModel:
    """Resolves everything to one model that nobody calls; `fail_with` is what a missing model raises."""

    def __init__(self):
        self.asked = []
        self.fail_with = None

    async def resolve(self, model_id, /):
        self.asked.append(model_id)
        if self.fail_with is not None:
            raise self.fail_with
        return ChosenModel(
            id=model_id or "stub:stub", chat=None, descriptor=ModelDescriptor(id="stub", display_name="stub")
        )


def open_storage(path):
    return SqliteStorage(path, SqliteSettings())


@asynccontextmanager
async def rig(path, runtime, *, storage=None, close=True, crash=False, policies=None, data_root=None, folders=None):
    """The parts of a host around one engine. `close=False`: storage stays open. `crash`: no run is given back. With
    `data_root` threads have files."""
    storage = storage or open_storage(path)
    await storage.__aenter__()
    hub, models, finished, started = Hub(), OneModel(), [], []
    activity = ActivityBoard(storage)

    async def ready():
        return runtime

    pool, reader = FilePool(), TranscriptReader(storage)
    files = data_root and FileParts(
        storage=storage,
        hub=hub,
        turns=reader,
        data_root=data_root,
        pool=pool,
        clock=time.time,
        logger=_LOGGER,
        folders=folders,
    )
    engine = RunEngine(
        PumpServices(
            storage=storage,
            hub=hub,
            models=models,
            runtime=ready,
            started=started.append,
            clock=time.time,
            redact=str,
            logger=_LOGGER,
            **({"files": files.of_turn, "changes": files.told_changes} if files else {}),
        ),
        server_id=uuid7(),
        finished=finished.append,
        changed=activity.changed,
        policies=policies or Policies(_LOGGER),
    )
    made = conversations(
        storage=storage,
        engine=engine,
        hub=hub,
        models=models,
        runtime=ready,
        changed=activity.changed,
        clock=time.time,
        reader=reader,
        files=files,
    )
    if files:
        files.start()
    try:
        yield SimpleNamespace(
            storage=storage,
            hub=hub,
            models=models,
            engine=engine,
            threads=made.threads,
            runs=made.runs,
            transcripts=made.transcripts,
            runtime=runtime,
            finished=finished,
            started=started,
            activity=activity,
            files=files,
            workspace=files and HostWorkspace(files.versions, files.paths, files.changes, engine),
        )
    finally:
        if crash:
            storage.release_runs = not_released
        hub.close()
        await engine.shutdown()
        if files:
            await files.stop()
        pool.close()
        if close:
            await storage.__aexit__(None, None, None)


async def not_released(server_id, /, *, caller):
    return frozenset()


async def start(parts, thread_id, text, *, message_id=None, key=None, **params):
    message = {"role": "user", "content": text} | ({"id": message_id} if message_id else {})
    body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [message]}, **params}}
    return (await parts.runs.command(thread_id, body, caller=LOCAL, idempotency_key=key)).envelope


async def log_of(parts, thread_id):
    return list(await parts.storage.events(thread_id, after=0, limit=100_000, caller=LOCAL))


async def settled(parts, run_id):
    """The run's row once it is final."""
    await parts.engine.when_idle()
    row = await parts.storage.run(run_id, caller=LOCAL)
    assert row is not None
    assert row.status.final
    return row


async def collect_until(stream, done):
    """Events of an observer until `done(event)`; closes it."""
    seen = []
    try:
        async for batch in stream:
            for event in batch.events:
                seen.append(event)
                if done(event):
                    return seen
    finally:
        await stream.aclose()
    return seen


def is_end(event):
    return event.method == "lifecycle" and event.namespace == () and b'"running"' not in event.data


def run(coroutine):
    async def bounded():
        async with asyncio.timeout(30):
            return await coroutine

    return asyncio.run(bounded())
