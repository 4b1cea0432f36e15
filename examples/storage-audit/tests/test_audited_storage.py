"""The wrapped storage still keeps the contract, and what happens to it is written down."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pizzabot_storage_audit.making import create
from pizzabot_storage_audit.settings import AuditSettings

from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import StorageContract, host
from pizzabot_hookspecs import LOCAL, Context, Unavailable
from pizzabot_hookspecs.storage_backends import NewRun, RunStatus, Storage


class RecordingLogger:
    """A `Logger` that keeps what is logged as errors."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, Mapping[str, Any]]] = []

    def debug(self, event: str, **facts: Any) -> None:
        logging.debug("%s %s", event, facts)

    info = warning = exception = debug

    def error(self, event: str, **facts: Any) -> None:
        self.errors.append((event, facts))


class NoSecrets:
    def resolve(self, reference: object, /) -> str:
        raise LookupError(reference)


def made(
    data_root: Path,
    section: Mapping[str, object],
    *,
    logger: RecordingLogger | None = None,
    clock: Callable[[], float] = time.time,
) -> Any:
    """The storage as a host makes it: the offer is chosen by name, and its `inner` is the built-in."""
    plugins = Plugins().load()

    def context(use: str, inner: Callable[[], Any] | None) -> Context:
        return Context(
            name=use,
            data_root=data_root,
            logger=logger or RecordingLogger(),
            secrets=NoSecrets(),
            clock=clock,
            redact=str,
            inner=inner,
        )

    return plugins.create(plugins.choose("storage_backends", "sqlite"), use="sqlite", section=section, context=context)


def audited(data_root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data_root / "audit" / "audit.ndjson").read_text().splitlines()]


class TestAuditedStorage(StorageContract):
    durable = True

    def storage(self, path: Path) -> Any:
        return made(path, {})


async def live(storage: Storage) -> None:
    """A run from admission to its end, and the end of its thread."""
    new = NewRun(
        run_id="run-1", thread_id="thread-1", input={"messages": ["a secret recipe"]}, options={}, fingerprint="f"
    )
    await storage.admit_run(new, caller=LOCAL)
    run = await storage.claim_run("run-1", server_id="server-1", caller=LOCAL)
    assert run is not None
    await storage.finish_run(
        "run-1", run.epoch, [], status=RunStatus.ERROR, error_code="GENERAL", error="a secret recipe", caller=LOCAL
    )
    assert await storage.delete_thread("thread-1", caller=LOCAL)


def test_the_plugin_is_loaded_and_stands_in_for_the_built_in() -> None:
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "storage-audit")
    assert (report.state, report.reason) == (PluginState.LOADED, None)
    assert list(report.stands_in_for) == ["sqlite-storage:sqlite"]
    assert plugins.choose("storage_backends", "sqlite").plugin == "storage-audit"
    assert plugins.choose("storage_backends", "sqlite-storage:sqlite").builtin


def test_a_runs_life_is_written_down_without_what_was_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with made(tmp_path, {}, clock=lambda: 1_800_000_000.0) as storage:
            await live(storage)

    asyncio.run(scenario())
    lines = audited(tmp_path)
    assert [line["event"] for line in lines] == ["run.admitted", "run.claimed", "run.finished", "thread.deleted"]
    assert lines[0] == {
        "at": "2027-01-15T08:00:00.000+00:00",
        "event": "run.admitted",
        "caller": "local",
        "request_id": None,
        "thread_id": "thread-1",
        "run_id": "run-1",
        "owner": "local",
        "created": True,
        "replaces": None,
    }
    assert lines[2]["status"] == "error"
    assert "secret recipe" not in (tmp_path / "audit" / "audit.ndjson").read_text()


def test_what_did_not_happen_is_not_written_down(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with made(tmp_path, {}) as storage:
            assert not await storage.delete_thread("nowhere", caller=LOCAL)
            assert await storage.claim_run("nothing", server_id="server-1", caller=LOCAL) is None

    asyncio.run(scenario())
    assert not (tmp_path / "audit" / "audit.ndjson").exists()


def test_a_trail_that_cannot_be_written_is_logged_and_conversations_go_on(tmp_path: Path) -> None:
    logger = RecordingLogger()

    async def scenario() -> None:
        async with made(tmp_path, {}, logger=logger) as storage:
            (tmp_path / "audit" / "audit.ndjson").mkdir()
            await live(storage)

    asyncio.run(scenario())
    assert {event for event, _ in logger.errors} == {"audit.not_written"}
    assert sum(facts["lines"] for _, facts in logger.errors) == 4


def test_a_section_is_shared_with_the_storage_that_is_wrapped(tmp_path: Path) -> None:
    """`readers` is the built-in's key, `audit_files` is ours; each gets what it knows."""

    async def scenario() -> None:
        async with made(tmp_path, {"readers": 1, "audit_files": 2, "audit_bytes": 5_000}) as storage:
            await live(storage)

    asyncio.run(scenario())
    assert len(audited(tmp_path)) == 4


def test_opening_passes_on_why_the_wrapped_storage_cannot_be_opened(tmp_path: Path) -> None:
    async def open_it() -> None:
        async with made(tmp_path, {}):
            pass

    asyncio.run(open_it())
    for database in tmp_path.glob("*.sqlite*"):
        database.write_bytes(b"no database " * 1_000)
    with pytest.raises(Unavailable) as raised:
        asyncio.run(open_it())
    assert raised.value.code == "database_damaged"


def test_without_the_built_in_there_is_nothing_to_wrap(tmp_path: Path) -> None:
    context = Context(
        name="sqlite",
        data_root=tmp_path,
        logger=RecordingLogger(),
        secrets=NoSecrets(),
        clock=lambda: 0.0,
        redact=str,
    )
    with pytest.raises(Unavailable, match="not loaded") as raised:
        create(context, AuditSettings())
    assert raised.value.code == "nothing_to_wrap"


def test_a_host_with_it_holds_a_conversation_and_leaves_a_trail(tmp_path: Path) -> None:
    import pizzabot_storage_audit

    async def scenario() -> None:
        async with host(plugins=[("storage-audit", pizzabot_storage_audit)], data_root=tmp_path) as running:
            body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"content": "margherita"}]}}}
            reply = await running.runs.command("thread-1", body, caller=LOCAL)
            assert reply.envelope["type"] == "success", reply.envelope
            await running.threads.delete("thread-1", caller=LOCAL)

    asyncio.run(scenario())
    events = [line["event"] for line in audited(tmp_path)]
    assert events[0] == "run.admitted"
    assert events[-1] == "thread.deleted"
    assert "margherita" not in (tmp_path / "audit" / "audit.ndjson").read_text()
