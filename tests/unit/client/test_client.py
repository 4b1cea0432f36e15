"""The client against a real server on loopback that loses answers, cuts streams and refuses."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pizzabot.client import (
    Client,
    ClientError,
    Event,
    IncompatibleError,
    RefusedError,
    RunEnded,
    RunFailed,
    RunOutcome,
    StreamCutError,
    TextDelta,
    UnreachableError,
)
from pizzabot.client.channel import TRIES


def with_client(url: str, work: Callable[[Client], Awaitable[Any]], token: str | None = None) -> Any:
    async def run() -> Any:
        async with Client(url, token, retry_seconds=0) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(run(), 30))


async def events_of(client: Client, text: str) -> list[Event]:
    return [event async for event in client.stream("t", text)]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_a_turn_is_streamed_from_its_first_word_to_its_end(server: Any) -> None:
    events = with_client(server.url, lambda client: events_of(client, "one two three"))
    assert text_of(events) == "one two three "
    assert events[-1] == RunEnded(run_id=next(iter(server.runs.values())), outcome=RunOutcome.COMPLETED)


def test_the_ids_are_minted_by_the_client_and_the_stream_begins_at_the_runs_first_event(server: Any) -> None:
    async def twice(client: Client) -> list[Event]:
        await events_of(client, "first")
        return await events_of(client, "second")

    events = with_client(server.url, twice)
    assert text_of(events) == "second "
    [first, second] = server.commands("run.start")
    assert first["params"]["run_id"] != second["params"]["run_id"]
    assert all(command["params"]["input"]["messages"][0]["id"] for command in (first, second))
    assert server.streams()[-1]["since"] == 4


def test_a_lost_answer_is_asked_for_again_with_the_same_ids_and_the_run_happens_once(server: Any) -> None:
    server.lose_answers = 2
    events = with_client(server.url, lambda client: events_of(client, "one two"))
    assert text_of(events) == "one two "
    commands = server.commands("run.start")
    assert len(commands) == 3
    assert all(command == commands[0] for command in commands)
    assert len(server.runs) == 1


def test_answers_that_are_always_lost_end_in_unreachable_after_all_tries(server: Any) -> None:
    server.lose_answers = 100
    with pytest.raises(UnreachableError):
        with_client(server.url, lambda client: events_of(client, "hello"))
    assert len(server.commands("run.start")) == TRIES


def test_after_a_cut_the_stream_goes_on_behind_the_last_event_without_gap_or_repeat(server: Any) -> None:
    server.cut_after = [2, 1, 3]
    events = with_client(server.url, lambda client: events_of(client, "a b c d e f g"))
    assert text_of(events) == "a b c d e f g "
    assert [body["since"] for body in server.streams()] == [0, 2, 3, 6]


def test_a_stream_that_is_cut_without_progress_is_given_up_after_all_tries(server: Any) -> None:
    server.cut_after = [0] * 20
    with pytest.raises(StreamCutError) as caught:
        with_client(server.url, lambda client: events_of(client, "hello"))
    assert caught.value.code == "stream_cut"
    assert len(server.streams()) == TRIES


def test_an_unreachable_server_is_said_to_be(dead_url: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        with_client(dead_url, lambda client: client.check_identity())
    assert dead_url in caught.value.detail


@pytest.mark.parametrize(
    ("identity", "code"),
    [({"hello": 1}, "not_pizzabot"), ({"protocolVersion": 2}, "protocol_version"), ([1], "not_pizzabot")],
)
def test_a_server_of_another_kind_or_protocol_is_incompatible(server: Any, identity: Any, code: str) -> None:
    server.identity = identity
    with pytest.raises(IncompatibleError) as caught:
        with_client(server.url, lambda client: client.check_identity())
    assert caught.value.code == code


def test_the_token_is_sent_in_the_header_and_is_in_no_address_and_no_repr(server: Any) -> None:
    server.token = "a-token-that-is-long-enough-for-the-test"
    status = with_client(server.url, lambda client: client.status(), server.token)
    assert status["model"] == "echo:echo"
    assert all(server.token not in request["path"] for request in server.requests)
    assert server.token not in repr(Client(server.url, server.token))


def test_without_the_token_the_server_refuses(server: Any) -> None:
    server.token = "secret"
    with pytest.raises(RefusedError) as caught:
        with_client(server.url, lambda client: client.status())
    assert (caught.value.code, caught.value.status) == ("unauthorized", 401)


def test_a_refused_command_is_the_envelopes_code_and_is_not_tried_again(server: Any) -> None:
    server.refuse = (200, {"type": "error", "id": 1, "error": "run_active", "message": "a run is\nactive"})
    with pytest.raises(RefusedError) as caught:
        with_client(server.url, lambda client: events_of(client, "hello"))
    assert (caught.value.code, caught.value.detail) == ("run_active", "a run is active")
    assert len(server.requests) == 1


def test_an_unknown_command_is_refused(server: Any) -> None:
    with pytest.raises(RefusedError) as caught:
        with_client(server.url, lambda client: client.command("t", "no.such", {}))
    assert (caught.value.code, caught.value.status) == ("unknown_command", 422)


def test_an_error_page_instead_of_json_is_tried_again_and_then_unreachable(server: Any) -> None:
    server.refuse = (502, b"<html>bad gateway</html>")
    with pytest.raises(UnreachableError):
        with_client(server.url, lambda client: events_of(client, "hello"))
    assert len(server.requests) == TRIES


def test_a_refused_stream_is_an_error_at_once(server: Any) -> None:
    server.refuse_stream = (409, {"error": "cursor_ahead", "detail": "since lies beyond the log"})
    with pytest.raises(RefusedError) as caught:
        with_client(server.url, lambda client: events_of(client, "hello"))
    assert caught.value.code == "cursor_ahead"
    assert len(server.streams()) == 1


def test_a_failed_run_ends_with_its_code_and_reason(server: Any) -> None:
    server.ending = {"event": "failed", "code": "RATE_LIMIT", "error": "slow down"}
    events = with_client(server.url, lambda client: events_of(client, "hello"))
    assert isinstance(events[-1], RunFailed)
    assert (events[-1].code, events[-1].detail) == ("RATE_LIMIT", "slow down")


def test_stop_ends_the_run_and_the_stream_says_cancelled(server: Any) -> None:
    server.hold = True

    async def stop_midway(client: Client) -> list[Event]:
        events: list[Event] = []
        async for event in client.stream("t", "one two", run_id="my-run"):
            events.append(event)
            if len(events) == 2:
                await client.stop("t", "my-run")
        return events

    events = with_client(server.url, stop_midway)
    assert server.stopped == ["my-run"]
    assert events[-1] == RunEnded(run_id="my-run", outcome=RunOutcome.CANCELLED)


def test_a_thread_is_created_with_an_id_of_the_clients(server: Any) -> None:
    thread_id = with_client(server.url, lambda client: client.create_thread(metadata={"a": 1}))
    [request] = server.requests
    assert request["body"] == {"thread_id": thread_id, "metadata": {"a": 1}, "if_exists": "do_nothing"}


@pytest.mark.parametrize("url", ["ftp://x", "http://user:pw@host", "http://host/?token=x", "http://", "http://h:99999"])
def test_an_address_that_is_none_or_holds_secrets_is_refused(url: str) -> None:
    with pytest.raises(ClientError) as caught:
        Client(url)
    assert caught.value.code == "bad_url"


def test_a_client_outside_its_with_block_says_so() -> None:
    with pytest.raises(ClientError) as caught:
        asyncio.run(Client("http://127.0.0.1:1").status())
    assert caught.value.code == "not_open"


def test_the_client_stands_alone() -> None:
    program = (
        "import sys, json, pizzabot.client\n"
        "print(json.dumps(sorted(name for name in sys.modules if name.startswith(('pizzabot', 'httpx', 'pydantic')))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = json.loads(done.stdout)
    assert all(name == "pizzabot" or name.startswith("pizzabot.client") for name in loaded), loaded
