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
from pizzabot_storage_audit.storage import AuditedStorage
from pizzabot_storage_audit.trail import AuditTrail
from pizzabot_storage_audit.verdicts import verdict_of

from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import StorageContract, host
from pizzabot_hookspecs import LOCAL, Conflict, Context, Unavailable
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import NewRun, RunStatus, Storage, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue


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


RECIPE = "a secret recipe"
ANSWERS: Mapping[InterruptKind, tuple[JsonValue, str | None]] = {
    InterruptKind.APPROVAL: (
        {"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {"text": RECIPE}}}]},
        "edit",
    ),
    InterruptKind.INPUT: (RECIPE, None),
    InterruptKind.RECOVERY: ({"choice": "retry"}, "retry"),
}


async def ask_and_decide(storage: Storage) -> None:
    """A run that ends with one question of each kind, and the answers to them, sent twice."""
    new = NewRun(run_id="run-1", thread_id="thread-1", input={}, options={}, fingerprint="f")
    await storage.admit_run(new, caller=LOCAL)
    run = await storage.claim_run("run-1", server_id="server-1", lease_seconds=60, caller=LOCAL)
    assert run is not None
    questions = [NewInterrupt(interrupt_id=kind.value, kind=kind, payload={"question": RECIPE}) for kind in ANSWERS]
    await storage.finish_run("run-1", run.epoch, [], status=RunStatus.INTERRUPTED, interrupts=questions, caller=LOCAL)
    decisions = [Decision(interrupt_id=kind.value, answer=answer) for kind, (answer, _) in ANSWERS.items()]
    resume = NewRun(run_id="run-2", thread_id="thread-1", input={}, options={}, fingerprint="g")
    for _ in range(2):
        await storage.decide(decisions, resume, by="phone", caller=LOCAL)
    late = NewRun(run_id="run-3", thread_id="thread-1", input={}, options={}, fingerprint="h")
    with pytest.raises(Conflict):
        await storage.decide(decisions, late, by="laptop", caller=LOCAL)


def test_who_decided_what_is_written_down_once_and_never_what_the_answer_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with made(tmp_path, {}) as storage:
            await ask_and_decide(storage)

    asyncio.run(scenario())
    lines = audited(tmp_path)
    assert [(line["event"], line.get("created"), line.get("interrupts")) for line in lines] == [
        ("run.admitted", True, None),
        ("run.claimed", None, None),
        ("run.finished", None, 3),
        *[("interrupt.decided", None, None)] * 3,
        ("run.admitted", True, None),
        ("run.admitted", False, None),
    ]
    told = ("thread_id", "interrupt_id", "decided_by", "kind", "verdict")
    assert [tuple(line[name] for name in told) for line in lines[3:6]] == [
        ("thread-1", kind.value, "phone", kind.value, verdict) for kind, (_, verdict) in ANSWERS.items()
    ]
    assert RECIPE not in (tmp_path / "audit" / "audit.ndjson").read_text()


def test_that_a_stopped_run_took_back_its_questions_is_written_down(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with made(tmp_path, {}) as storage:
            await ask_and_decide(storage)
            run = await storage.claim_run("run-2", server_id="server-1", caller=LOCAL)
            assert run is not None
            await storage.finish_run("run-2", run.epoch, [], status=RunStatus.CANCELLED, withdraw=True, caller=LOCAL)
            page = await storage.threads(limit=1, offset=0, status=ThreadStatus.IDLE, caller=LOCAL)
            assert [thread.thread_id for thread in page] == ["thread-1"]

    asyncio.run(scenario())
    ended = [line for line in audited(tmp_path) if line["event"] == "run.finished"]
    assert [(line["run_id"], line["withdrew"]) for line in ended] == [("run-1", False), ("run-2", True)]


@pytest.mark.parametrize(
    ("kind", "answer", "verdict"),
    [
        (InterruptKind.APPROVAL, {"decisions": [{"type": "reject"}, {"type": "approve"}]}, "approve,reject"),
        (InterruptKind.APPROVAL, {"decisions": [{"type": RECIPE}, RECIPE, {"type": ["approve"]}]}, None),
        (InterruptKind.APPROVAL, {"decisions": RECIPE}, None),
        (InterruptKind.RECOVERY, {"choice": RECIPE}, None),
        (InterruptKind.RECOVERY, {"choice": ["retry"]}, None),
        (InterruptKind.INPUT, {"choice": "retry"}, None),
        (None, {"choice": "retry"}, None),
    ],
)
def test_a_verdict_is_one_of_the_known_words_whatever_the_answer_holds(
    kind: InterruptKind | None, answer: JsonValue, verdict: str | None
) -> None:
    assert verdict_of(kind, answer) == verdict


class Audited:
    """The methods that are written down, as a later host may call them: each with a parameter that is not known yet."""

    def __init__(self) -> None:
        self.given: list[object] = []

    def __getattr__(self, name: str) -> Any:
        async def called(*_given: object, **parameters: object) -> object:
            self.given.append((name, parameters.get("later")))
            return {"claim_run": None, "finish_run": 1, "delete_thread": False, "new_method": "new"}[name]

        return called


def test_methods_and_parameters_that_come_later_reach_the_wrapped_storage(tmp_path: Path) -> None:
    async def scenario() -> None:
        inner: Any = Audited()
        trail = AuditTrail(tmp_path, max_bytes=1_000, max_files=1, clock=time.time, logger=RecordingLogger())
        storage: Any = AuditedStorage(inner, trail)  # type: ignore[abstract]
        await storage.claim_run("run-1", server_id="server-1", caller=LOCAL, later=1)
        await storage.finish_run("run-1", 1, [], status=RunStatus.SUCCESS, caller=LOCAL, later=2)
        await storage.delete_thread("thread-1", caller=LOCAL, later=3)
        assert await storage.new_method(later=4) == "new"
        assert inner.given == [("claim_run", 1), ("finish_run", 2), ("delete_thread", 3), ("new_method", 4)]

    asyncio.run(scenario())


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
