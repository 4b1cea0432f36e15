"""The skills that ship, on a real host: the echo model does what a test tells it, in the assistant and in the skill."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pizzabot.host.app import PizzabotHost
from pizzabot.testing import host
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.host import EventFilter
from pizzabot_hookspecs.interrupts import Interrupt

REPOSITORY = Path(__file__).parents[3]
SKILLS = REPOSITORY / "skills"
IDS = sorted(path.parent.name for path in SKILLS.glob("*/SKILL.md"))
ENDINGS = ("completed", "failed", "interrupted")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def skill_file(skill: str) -> str:
    return (SKILLS / skill / "SKILL.md").read_text("utf-8")


def code_of(skill: str) -> list[str]:
    """Its blocks of JavaScript, in order."""
    return re.findall(r"^ *```js\n(.*?)^ *```", skill_file(skill), re.MULTILINE | re.DOTALL)


def calls(tool: str, **arguments: Any) -> str:
    return f"[[tool {tool} {json.dumps(arguments)}]]"


def evals(code: str) -> str:
    return calls("eval", code=code)


class Desk:
    """A host with folders that are granted, and one conversation."""

    def __init__(self, running: PizzabotHost) -> None:
        self.host = running

    async def delegates(self, skill: str, *steps: str) -> str:
        """The assistant hands work to the skill, which takes these steps: what comes back, empty where it asks."""
        description = " [[then]] ".join(steps)
        asked = calls("task", subagent_type=skill, description=description)
        return await self._done("run.start", {"input": {"messages": [{"content": asked}]}})

    async def answers(self, question: Interrupt, option: str) -> str:
        response = {"kind": "option", "id": option}
        return await self._done("input.respond", {"interrupt_id": question.interrupt_id, "response": response})

    async def question(self) -> Interrupt:
        [found] = await self.host.runs.interrupts("thread-1", caller=LOCAL)
        return found

    async def _done(self, method: str, params: Mapping[str, Any]) -> str:
        log = await self.host.runs.observe(
            "thread-1", EventFilter(channels=frozenset({"lifecycle"})), since=0, caller=LOCAL
        )
        body = {"id": 1, "method": method, "params": params}
        reply = await self.host.runs.command("thread-1", body, caller=LOCAL)
        assert reply.envelope["type"] == "success", reply.envelope
        try:
            ending = await _ending(log, reply.envelope["result"]["run_id"])
        finally:
            await log.aclose()
        assert ending != "failed"
        return await self._last() if ending == "completed" else ""

    async def _last(self) -> str:
        state = await self.host.threads.state("thread-1", caller=LOCAL)
        content = state["values"]["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def _ending(log: Any, run_id: str) -> str:
    async for batch in log:
        for event in batch.events:
            if event.run_id == run_id and not event.namespace:
                for ending in ENDINGS:
                    if f'"{ending}"'.encode() in event.data:
                        return ending
    raise AssertionError("the log ended before the run")


@asynccontextmanager
async def desk(*folders: Path, read_only: bool = True) -> AsyncIterator[Desk]:
    """Each folder is `/local/<its name>`."""
    grants = [{"path": str(folder), "read_only": read_only} for folder in folders]
    async with host(settings={"folders": {"grants": grants}}) as running:
        await running.runtime()
        yield Desk(running)
