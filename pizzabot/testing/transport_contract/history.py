"""Earlier states, where a transport tells them: newest first, in pages, a subagent's own, nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot.testing.transport_contract.base import SOMEBODY_ELSE, ServedContract, code_of, within_patience
from pizzabot.testing.transport_contract.clients import HistoryClient
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.wire import ThreadState


class HistoryContract(ServedContract):
    """A part of `TransportContract`, for a transport with `history = True`."""

    @within_patience
    async def test_earlier_states_come_newest_first_and_as_they_are(self) -> None:
        async with self._with_history(3) as (host, client):
            assert list(await client.history("t")) == host.histories["t"]

    @within_patience
    async def test_a_page_goes_on_before_the_last_state_of_the_page_before(self) -> None:
        async with self._with_history(5) as (host, client):
            first = await client.history("t", limit=2)
            rest = await client.history("t", before=first[-1]["checkpoint"]["checkpoint_id"])
            assert [*first, *rest] == host.histories["t"]
            assert (len(first), len(rest)) == (2, 3)

    @within_patience
    async def test_a_subagents_own_states_are_those_of_its_namespace(self) -> None:
        async with self._with_history(2) as (host, client):
            inner = _state("i1", namespace="tools:a|tools:b")
            host.histories["t"] += [_state("i0", namespace="tools:a"), inner]
            assert list(await client.history("t", namespace=("tools:a", "tools:b"))) == [inner]

    @within_patience
    async def test_the_history_of_what_is_not_there_or_not_the_callers_is_refused(self) -> None:
        async with self._with_history(1) as (host, client):
            await host.threads.create("theirs", caller=SOMEBODY_ELSE)
            host.histories["theirs"] = [_state("c1")]
            assert await code_of(client.history("nowhere")) == "no_such_thread"
            assert await code_of(client.history("theirs")) == "no_such_thread"
            assert await code_of(client.history("t", before="nothing")) == "no_such_checkpoint"

    @asynccontextmanager
    async def _with_history(self, states: int) -> AsyncIterator[tuple[ScriptedHost, HistoryClient]]:
        async with self.served() as (host, client):
            await host.threads.create("t", caller=LOCAL)
            host.histories["t"] = [_state(f"c{number}") for number in range(states, 0, -1)]
            yield host, cast("HistoryClient", client)


def _state(checkpoint_id: str, *, namespace: str = "") -> ThreadState:
    return {
        "values": {"messages": [{"type": "human", "content": f"pizza 🍕 {checkpoint_id}"}]},
        "next": ["model"],
        "tasks": [],
        "metadata": {"step": 1},
        "created_at": "2026-01-01T00:00:00+00:00",
        "checkpoint": {"thread_id": "t", "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id},
        "parent_checkpoint": None,
        "interrupts": [],
    }
