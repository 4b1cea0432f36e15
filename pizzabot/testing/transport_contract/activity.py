"""Activity, where a transport tells it: everything as it is, then what changes, of the caller's threads alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot.testing.transport_contract.base import SOMEBODY_ELSE, ServedContract, start, within_patience
from pizzabot.testing.transport_contract.clients import ActivityClient
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState

Told = AsyncGenerator[Mapping[str, Any], None]


class ActivityContract(ServedContract):
    """A part of `TransportContract`, for a transport with `activity = True`."""

    @within_patience
    async def test_the_first_that_a_follower_is_told_is_everything_of_its_own(self) -> None:
        async with self.served() as (host, client):
            await host.threads.create("mine", caller=LOCAL)
            await host.threads.create("theirs", caller=SOMEBODY_ELSE)
            host.set_waiting(_asked("i1", "mine"), _asked("i2", "theirs", owner=SOMEBODY_ELSE.owner))
            async with aclosing(cast("ActivityClient", client).activity()) as told:
                whole = await anext(told)
        assert whole["complete"] is True
        assert [(row["threadId"], row["status"]) for row in whole["threads"]] == [("mine", "interrupted")]
        assert [row["interruptId"] for row in whole["inbox"]] == ["i1"]

    @within_patience
    async def test_a_follower_is_told_of_a_thread_its_run_and_its_end(self) -> None:
        async with self._following() as (host, client, told):
            await client.command("t", start("hold on"))
            await _until(told, lambda said: _status(said, "t") == "busy")
            host.release("t")
            await _until(told, lambda said: _status(said, "t") == "idle")
            await host.threads.delete("t", caller=LOCAL)
            gone = await _until(told, lambda said: "t" in said["deleted"])
            assert gone["complete"] is False

    @within_patience
    async def test_a_follower_is_told_of_the_inbox_where_it_changed_and_only_there(self) -> None:
        async with self._following() as (host, client, told):
            host.set_waiting(_asked("i1", "t"))
            assert [row["interruptId"] for row in (await _until(told, _has_inbox))["inbox"]] == ["i1"]
            await client.create_thread("other")
            created = await _until(told, lambda said: _status(said, "other") == "idle")
            assert created.get("inbox") is None
            host.set_waiting()
            assert (await _until(told, _has_inbox))["inbox"] == []

    @within_patience
    async def test_a_follower_that_leaves_is_let_go(self) -> None:
        async with self._following() as (host, _, told):
            await told.aclose()
            await host.followed(0)

    @asynccontextmanager
    async def _following(self) -> AsyncIterator[tuple[ScriptedHost, ActivityClient, Told]]:
        """A host with nothing in it, and a follower that was told so."""
        async with self.served() as (host, plain):
            client = cast("ActivityClient", plain)
            async with aclosing(client.activity()) as told:
                assert (await anext(told))["complete"] is True
                yield host, client, told


async def _until(told: Told, holds: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    async for said in told:
        if holds(said):
            return said
    raise AssertionError("the activity ended before it was told")


def _status(said: Mapping[str, Any], thread_id: str) -> str | None:
    return next((row["status"] for row in said["threads"] if row["threadId"] == thread_id), None)


def _has_inbox(said: Mapping[str, Any]) -> bool:
    return said.get("inbox") is not None


def _asked(interrupt_id: str, thread_id: str, *, owner: str = LOCAL.owner) -> Interrupt:
    return Interrupt(
        interrupt_id=interrupt_id,
        run_id="run-1",
        thread_id=thread_id,
        owner=owner,
        kind=InterruptKind.INPUT,
        payload={"question": "Thin or thick?"},
        namespace=(),
        state=InterruptState.OPEN,
        created_at=1_800_000_000.0,
    )
