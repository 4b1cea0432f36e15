"""The transcript, where a transport serves it: pages, tool calls in full, export, branches, compaction."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot.testing.transport_contract.base import SOMEBODY_ELSE, ServedContract, code_of, say, start, within_patience
from pizzabot.testing.transport_contract.clients import TranscriptClient
from pizzabot_hookspecs import LOCAL

ODD_CALLS = ("call_1", "a/b", "a%2Fb", "100%", "../..", "..", "a b?c#d&e=f", "pizza 🍕 é", "tab\tline\nend", "x+y;z,")
LONG = 200_000


class TranscriptContract(ServedContract):
    """A part of `TransportContract`, for a transport with `transcripts = True`."""

    @within_patience
    async def test_a_page_shows_what_was_said_and_goes_on_where_the_one_before_ended(self) -> None:
        async with self._talked("one", "two", "three") as (host, client):
            newest = await client.transcript("t", limit=2)
            assert _texts(newest) == ["two", "three"]
            assert (newest["hasBefore"], newest["hasAfter"]) == (True, False)
            assert newest["asOfSeq"] == host.events("t")[-1].seq
            older = await client.transcript("t", before_seq=newest["turns"][0]["seq"])
            assert (_texts(older), older["hasBefore"]) == (["one"], False)
            around = await client.transcript("t", around_seq=older["turns"][0]["seq"], limit=1)
            assert _texts(around) == ["one"]

    @within_patience
    async def test_a_page_is_what_the_host_says_with_what_is_being_written_now(self) -> None:
        async with self._talked() as (host, client):
            await client.command("t", start("hold on 🍕"))
            await host.logged("t", lambda event: b"content-block-delta" in event.data)
            assert await client.transcript("t") == await host.transcripts.page("t", caller=LOCAL)
            assert _texts(await client.transcript("t")) == ["hold"]

    @within_patience
    async def test_the_path_to_another_head_and_a_subagents_items_are_told(self) -> None:
        async with self._talked("one") as (host, client):
            _turn(host, "m:1@x~y", parent=None)
            _turn(host, "m2", parent="m:1@x~y")
            wanted = await host.transcripts.page("t", head="m:1@x~y", caller=LOCAL)
            assert await client.transcript("t", head="m:1@x~y") == wanted
            assert [turn["id"] for turn in wanted["turns"]] == ["m:1@x~y"]
            below = await client.transcript("t", namespace=("tools:a", "tools:b"))
            assert below["namespace"] == ["tools:a", "tools:b"]

    @within_patience
    async def test_the_items_of_a_turn_come_before_a_place(self) -> None:
        async with self._talked() as (host, client):
            _calls(host, "a", "b", "c")
            turn = (await client.transcript("t"))["turns"][0]
            last = await client.items("t", turn["id"], limit=1)
            older = await client.items("t", turn["id"], before_seq=last["items"][0]["seq"])
            shown = [*older["items"], *last["items"]]
            assert [item["callId"] for item in shown] == ["a", "b", "c"]
            assert (last["hasBefore"], older["hasBefore"]) == (True, False)

    @within_patience
    async def test_a_tool_call_is_told_in_full_whatever_its_id(self) -> None:
        async with self._talked() as (host, client):
            _calls(host, *ODD_CALLS)
            page = await client.transcript("t")
            for call_id in ODD_CALLS:
                item = next(item for item in page["turns"][0]["items"] if item["callId"] == call_id)
                told = await client.tool_text("t", call_id, "input")
                assert json.loads(told) == {"of": call_id}
                assert await client.tool_text("t", call_id, "input", item_id=item["id"]) == told
                assert (await client.tool_text("t", call_id, "output")).endswith(f"é{call_id}")

    @within_patience
    async def test_an_export_is_whole_and_says_what_is_in_it(self) -> None:
        async with self._talked("one 🍕", "two") as (host, client):
            host.transcripts.padding = 1_000_000
            for kind, media_type in (("md", "text/markdown"), ("json", "application/json")):
                made = await client.export("t", format=kind, branches="all")
                assert "one" in made.body.decode()
                assert len(made.body) > host.transcripts.padding
                assert made.media_type.startswith(media_type)
                assert made.file_name == f"t.{kind}"
                assert (made.as_of_seq, made.turns) == (host.events("t")[-1].seq, 2)
            await host.transcripts.exports_closed()

    @within_patience
    async def test_a_client_that_leaves_closes_its_export(self) -> None:
        async with self._talked("one") as (host, client):
            host.transcripts.padding = 64_000_000
            async with client.begin_export("t"):
                assert host.transcripts.open_exports == 1
            await host.transcripts.exports_closed()

    @within_patience
    async def test_a_head_is_chosen_and_a_thread_is_forked(self) -> None:
        async with self._talked("one", "two") as (_, client):
            first = (await client.transcript("t"))["turns"][0]["id"]
            forked = await client.fork("t", first, new_thread_id="t:2")
            assert forked["threadId"] == "t:2"
            assert (await client.transcript("t:2"))["head"] == first
            assert (await client.fork("t"))["threadId"] not in ("t", "t:2")
            assert await client.choose_head("t", first) == {"turnId": first}
            assert (await client.transcript("t"))["head"] == first
            assert await code_of(client.fork("t", new_thread_id="t:2")) == "thread_exists"

    @within_patience
    async def test_a_context_is_shortened_once_for_one_key(self) -> None:
        async with self._talked("one") as (host, client):
            done = await client.compact("t", idempotency_key="k1")
            assert done == {"tokensBefore": 1000, "tokensAfter": 100}
            assert await client.compact("t", idempotency_key="k1") == done
            assert host.transcripts.compactions == 1
            await client.compact("t")
            assert host.transcripts.compactions == 2

    @within_patience
    async def test_what_is_not_there_busy_or_not_the_callers_is_refused(self) -> None:
        async with self._talked("one") as (host, client):
            await host.threads.create("theirs", caller=SOMEBODY_ELSE)
            for thread in ("nowhere", "theirs"):
                for asked in (
                    client.transcript(thread),
                    client.items(thread, "m1"),
                    client.tool_text(thread, "c", "input"),
                    client.export(thread),
                    client.choose_head(thread, "m1"),
                    client.fork(thread),
                    client.compact(thread),
                ):
                    assert await code_of(asked) == "no_such_thread"
            assert await code_of(client.transcript("t", head="nothing")) == "no_such_turn"
            assert await code_of(client.items("t", "nothing")) == "no_such_turn"
            assert await code_of(client.choose_head("t", "nothing")) == "no_such_turn"
            assert await code_of(client.tool_text("t", "nothing", "output")) == "no_such_tool_call"
            await client.command("t", start("hold on"))
            assert await code_of(client.compact("t")) == "thread_busy"

    @asynccontextmanager
    async def _talked(self, *said: str) -> AsyncIterator[tuple[ScriptedHost, TranscriptClient]]:
        async with self.served() as (host, client):
            await client.create_thread("t")
            for text in said:
                await say(host, client, "t", text)
            yield host, cast("TranscriptClient", client)


def _texts(page: dict[str, Any] | Any) -> list[str]:
    return [item["text"] for turn in page["turns"] for item in turn["items"] if item["kind"] == "text"]


def _turn(host: ScriptedHost, turn_id: str, *, parent: str | None) -> None:
    message = {"id": turn_id, "role": "user", "content": [{"type": "text", "text": turn_id}], "metadata": {}}
    payload = {"v": 1, "turn_id": turn_id, "parent_id": parent, "source": "user", "message": message}
    host.append("t", "custom", {"name": "pizzabot.turn", "payload": payload})


def _calls(host: ScriptedHost, *call_ids: str) -> None:
    """A run that has called these tools, each with a long result."""
    host.append("t", "lifecycle", {"event": "running", "graph_name": "scripted"}, run_id="r")
    for number, call_id in enumerate(call_ids):
        began = {"event": "tool-started", "tool_call_id": call_id, "tool_name": "look", "input": {"of": call_id}}
        host.append("t", "tools", began, namespace=(f"tools:{number}",), run_id="r")
        result = {"type": "tool", "content": "é" * LONG + call_id, "tool_call_id": call_id, "status": "success"}
        ended = {"event": "tool-finished", "tool_call_id": call_id, "output": result}
        host.append("t", "tools", ended, namespace=(f"tools:{number}",), run_id="r")
    host.append("t", "lifecycle", {"event": "completed"}, run_id="r")
