"""A message's id is a message's alone: sent again with other words it changes nothing of what was said before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from servers import running_server
from talking import ask, frames_of, texts
from watching import Client


def play(folder: Path, scene: Callable[[Client], Awaitable[None]]) -> None:
    async def bounded(url: str) -> None:
        async with asyncio.timeout(60), Client(url) as client:
            await scene(client)

    with running_server(folder) as server:
        asyncio.run(bounded(server.http))


async def sent(client: Client, thread_id: str, *messages: tuple[str, str]) -> dict[str, Any]:
    """The answer to a `run.start` with these messages, (id, text) each; the run has ended then, if there is one."""
    given = [{"type": "human", "id": name, "content": text} for name, text in messages]
    answer = await client.command(thread_id, "run.start", {"input": {"messages": given}})
    if answer["type"] == "success":
        await frames_of(client, thread_id, answer["result"]["run_id"])
    return answer


def human(state: Any) -> list[str]:
    return [text for kind, text in texts(state) if kind == "human"]


def test_an_id_of_a_message_that_a_fork_was_made_with_is_not_another_message_there(tmp_path: Path) -> None:
    async def scene(client: Client) -> None:
        for number, text in enumerate(("one", "two", "three"), 1):
            await sent(client, "t", (f"m{number}", text))
        forked = await client._client.post("/threads/t/fork", json={"threadId": "fork"})
        assert forked.status_code == 201
        again = await sent(client, "fork", ("m2", "other words"))
        assert human(await client.state("fork")) == ["one", "two", "three"]
        assert again.get("error") == "idempotency_mismatch"
        page = (await client._client.get("/threads/fork/transcript")).json()
        assert [turn["id"] for turn in page["turns"]] == ["m1", "m2", "m3"]

    play(tmp_path, scene)


def test_an_id_of_an_earlier_one_of_several_messages_of_a_run_is_not_another_message_later(tmp_path: Path) -> None:
    async def scene(client: Client) -> None:
        await sent(client, "t", ("x1", "one"), ("x2", "two"))
        await ask(client, "t", "three")
        again = await sent(client, "t", ("x1", "other words"))
        assert human(await client.state("t"))[:3] == ["one", "two", "three"]
        assert again.get("error") == "idempotency_mismatch"

    play(tmp_path, scene)
