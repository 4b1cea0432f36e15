"""Threads: making them, their state, and what is not the caller's."""

from __future__ import annotations

from pizzabot.testing.transport_contract.base import (
    SOMEBODY_ELSE,
    ServedContract,
    code_of,
    frame_of,
    listening,
    say,
    start,
    within_patience,
)


class ThreadContract(ServedContract):
    """A part of `TransportContract`."""

    @within_patience
    async def test_a_thread_gets_the_id_and_metadata_that_were_asked_for_or_an_id_of_its_own(self) -> None:
        async with self.served() as (_, client):
            asked = await client.create_thread("tea", metadata={"colour": "green"})
            minted = await client.create_thread()
            assert (asked["thread_id"], asked["metadata"]) == ("tea", {"colour": "green"})
            assert minted["thread_id"] not in ("", "tea")

    @within_patience
    async def test_a_thread_that_exists_is_refused_unless_the_client_does_not_mind(self) -> None:
        async with self.served() as (_, client):
            await client.create_thread("tea")
            again = await client.create_thread("tea", if_exists="do_nothing")
            assert again["thread_id"] == "tea"
            assert await code_of(client.create_thread("tea")) == "thread_exists"

    @within_patience
    async def test_the_state_of_an_unknown_thread_is_refused_with_its_code(self) -> None:
        async with self.served() as (_, client):
            assert await code_of(client.state("nowhere")) == "no_such_thread"

    @within_patience
    async def test_the_state_shows_what_was_said(self) -> None:
        async with self.served() as (host, client):
            await say(host, client, "t", "good morning")
            messages = (await client.state("t"))["values"]["messages"]
            assert [message["content"] for message in messages] == ["good morning", "good morning"]

    @within_patience
    async def test_the_state_of_somebody_elses_thread_is_not_told_from_none(self) -> None:
        async with self.served() as (host, client):
            await host.threads.create("theirs", caller=SOMEBODY_ELSE)
            assert await code_of(client.state("theirs")) == "no_such_thread"

    @within_patience
    async def test_what_somebody_else_says_on_a_thread_of_the_same_name_is_not_heard(self) -> None:
        async with self.served() as (host, client), listening(host, client, "shared") as next_frame:
            await host.runs.command("shared", start("a secret"), caller=SOMEBODY_ELSE)
            await client.command("shared", start("mine"))
            await host.settled("shared")
            heard = [await next_frame() for _ in host.events("shared")]
            assert heard == [frame_of(event) for event in host.events("shared")]
