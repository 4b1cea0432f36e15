"""Commands: answered at once, refused by an envelope, and stopping."""

from __future__ import annotations

import json

from pizzabot.testing.transport_contract.base import (
    SOMEBODY_ELSE,
    ServedContract,
    start,
    within_patience,
)
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import ThreadStatus


class CommandContract(ServedContract):
    """A part of `TransportContract`."""

    @within_patience
    async def test_a_command_is_answered_before_its_run_has_ended(self) -> None:
        async with self.served() as (host, client):
            answer = await client.command("t", start("hold on", command_id=7))
            assert (answer["type"], answer["id"]) == ("success", 7)
            assert answer["meta"] == {"applied_through_seq": 0}
            assert (await host.threads.get("t", caller=LOCAL)).status is ThreadStatus.BUSY

    @within_patience
    async def test_a_refused_command_comes_back_as_an_envelope_with_its_id_and_code(self) -> None:
        async with self.served() as (_, client):
            await client.command("t", start("hold on"))
            body = start("again", command_id=8)
            body["params"]["multitask_strategy"] = "reject"
            refused = await client.command("t", body)
            assert (refused["type"], refused["id"], refused["error"]) == ("error", 8, "run_active")
            assert refused["message"]

    @within_patience
    async def test_an_unknown_command_and_one_that_is_none_are_envelopes_too(self) -> None:
        async with self.served() as (_, client):
            unknown = await client.command("t", {"id": 9, "method": "tea.make", "params": {}})
            malformed = await client.command("t", [1, 2])
            assert (unknown["type"], unknown["id"], unknown["error"]) == ("error", 9, "unknown_command")
            assert (malformed["type"], malformed["id"], malformed["error"]) == ("error", None, "invalid_argument")

    @within_patience
    async def test_stopping_ends_the_run_and_a_stale_run_id_touches_nothing(self) -> None:
        async with self.served() as (host, client):
            run_id = (await client.command("t", start("hold on")))["result"]["run_id"]
            assert await client.stop("t", "another-run") == "no_run"
            assert (await host.threads.get("t", caller=LOCAL)).status is ThreadStatus.BUSY
            assert await client.stop("t", run_id) == "cancelled"
            assert json.loads(host.events("t")[-1].data) == {"event": "completed", "code": "CANCELLED"}
            assert await client.stop("t", run_id) == "no_run"

    @within_patience
    async def test_somebody_elses_run_is_not_stopped(self) -> None:
        async with self.served() as (host, client):
            reply = await host.runs.command("theirs", start("hold on"), caller=SOMEBODY_ELSE)
            assert await client.stop("theirs", reply.envelope["result"]["run_id"]) == "no_run"
            assert (await host.threads.get("theirs", caller=SOMEBODY_ELSE)).status is ThreadStatus.BUSY
