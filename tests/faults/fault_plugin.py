"""The plugin of the fault tests, as a third party would write it: tools that do harm when they run twice, and holds.

Installed as a distribution beside a real server (`conftest`). Whatever it does it announces at a gate of the test's
process (`gates`), which answers at once or holds it there: to be stopped, to be killed, or to go on.

    tools      post (unrepeatable), mail (the same, a person decides), slow, look (repeatable), spawn, boom
    runtime    `team`: the built-in one, with a subagent `clerk` that has these tools too, and `ask_user`
    storage    `holding`: the built-in one, that stands still around its writes
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import Caller, Context, Offer, hookimpl
from pizzabot_hookspecs.agent_runtimes import BuiltinTool, RuntimeServices, SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool
from pizzabot_hookspecs.file_storage import Attachment, FileVersion, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent
from pizzabot_hookspecs.support import processes

# A child that ends on TERM and a grandchild that does not; each says its number.
PARENT_OF_ONE = (
    "import subprocess, sys; print('ready', flush=True); "
    "subprocess.run([sys.executable, '-c', sys.argv[1]], stdout=sys.stdout)"
)
STUBBORN = (
    "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); signal.pause()"
)


async def gate(name: str) -> None:
    """Say where this process is, and stay there until the test lets it go on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["FAULT_GATES"]))
    try:
        writer.write(name.encode() + b"\n")
        await reader.readline()
    finally:
        writer.close()


class Harm:
    """What cannot be undone: a line in a file, on the disk before anything follows."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "done.txt"

    def do(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


class FaultTools:
    def __init__(self, context: Context, _settings: object) -> None:
        self._harm = Harm(context.data_root.parent)

    async def tools(self) -> list[AgentTool]:
        return made_tools(self._harm)


def made_tools(harm: Harm) -> list[AgentTool]:
    from langchain_core.tools import tool

    async def sent(word: str, to: str) -> str:
        await gate(f"before {word} {to}")
        harm.do(f"{word} {to}")
        await gate(f"after {word} {to}")
        return f"{word} sent to {to}"

    @tool
    async def post(to: str) -> str:
        """Send a letter."""
        return await sent("post", to)

    @tool
    async def mail(to: str) -> str:
        """Send a mail, once a person has allowed it."""
        return await sent("mail", to)

    @tool
    async def slow(name: str) -> str:
        """Take long."""
        await gate(f"slow {name}")
        return f"slow {name}"

    @tool
    async def look(what: str) -> str:
        """Look, which does no harm."""
        await gate(f"look {what}")
        harm.do(f"look {what}")
        return f"saw {what}"

    @tool
    async def spawn(name: str) -> str:
        """Start a process that starts a process."""
        command = [sys.executable, "-c", PARENT_OF_ONE, STUBBORN]
        async with processes.running(command, stdin=False) as process:
            assert process.stdout is not None
            await process.stdout.readline()
            grandchild = int(await process.stdout.readline())
            await gate(f"spawn {name} {process.pid} {grandchild}")
            await process.wait()
        return "ended"

    @tool
    async def boom(why: str) -> str:
        """Fail."""
        raise RuntimeError(f"boom: {why}")

    return [
        AgentTool(tool=post),
        AgentTool(tool=mail, approval=DECISIONS),
        AgentTool(tool=slow),
        AgentTool(tool=look, repeatable=True),
        AgentTool(tool=spawn),
        AgentTool(tool=boom),
    ]


class Team(DeepAgentsRuntime):
    """The built-in runtime with somebody to delegate to."""

    def __init__(self, context: Context, settings: RuntimeSettings) -> None:
        super().__init__(settings, logger=context.logger, redact=context.redact)

    async def prepare(self, services: RuntimeServices, /) -> None:
        given = services.roster()
        clerk = SubagentSpec(
            name="clerk",
            description="does as told",
            prompt="You are a clerk.",
            tools=tuple(given.tools),
            builtins=frozenset({BuiltinTool.ASK_USER}),
        )
        roster = replace(given, fingerprint="with a clerk", subagents=(clerk,))
        await super().prepare(replace(services, roster=lambda: roster))


class HoldingStorage(SqliteStorage):
    """Stands still after a text with `HERE` is stored, a call has its result, around a run's end and a file's row."""

    async def append_events(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        here = any(event.method == "messages" and b"HERE" in event.data for event in events)
        if here:
            await gate("before the insert")
        first = await super().append_events(run_id, epoch, events, caller=caller)
        if here:
            await gate("inserted")
        return first

    async def close_intent(self, run_id: str, epoch: int, call_id: str, /, *, caller: Caller) -> None:
        await super().close_intent(run_id, epoch, call_id, caller=caller)
        await gate("closed")

    async def finish_run(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, **more: Any) -> int:
        await gate("before the end")
        first = await super().finish_run(run_id, epoch, events, **more)
        await gate("after the end")
        return first

    async def put_file(self, new: NewFileVersion, event: NewEvent, /, **more: Any) -> FileVersion:
        await gate("before the row")
        stored = await super().put_file(new, event, **more)
        await gate("after the row")
        return stored

    async def add_attachment(self, attachment: Attachment, /, *, caller: Caller) -> None:
        await gate("before the attachment")
        await super().add_attachment(attachment, caller=caller)
        await gate("after the attachment")


def _storage(context: Context, settings: SqliteSettings) -> HoldingStorage:
    return HoldingStorage(context.data_root, settings, clock=context.clock)


@hookimpl
def pizzabot_agent_tools() -> list[Offer[Any]]:
    return [Offer(name="faults", summary="tools that must not run twice", create=FaultTools)]


@hookimpl
def pizzabot_agent_runtimes() -> list[Offer[Any]]:
    return [Offer(name="team", summary="with a subagent", create=Team, settings=RuntimeSettings)]


@hookimpl
def pizzabot_storage_backends() -> list[Offer[Any]]:
    return [Offer(name="holding", summary="stands still", create=_storage, settings=SqliteSettings)]
