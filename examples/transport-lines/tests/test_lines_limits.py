"""What a client may not do, and what happens to it then: nothing grows, and nobody else notices."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
from pizzabot_lines.client import LinesClient, Refused
from pizzabot_lines.requests import MAX_DEPTH
from pizzabot_lines.sockets import same_user
from pydantic import ValidationError
from serving import TOKEN, RawClient, RecordingLogger, served, transport_for

from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import ScriptedHost, host, imported_by
from pizzabot_hookspecs import LOCAL, Conflict, Context, InvalidRequest, NotPermitted, Unavailable
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState

IDENTITY = {"id": 1, "op": "identity"}


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def limited(**limits: float) -> Mapping[str, Any]:
    return {"limits": limits}


def test_the_plugin_is_loaded() -> None:
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "transport-lines")
    assert (report.state, report.reason) == (PluginState.LOADED, None)
    assert plugins.choose("transports", "lines").qualified == "transport-lines:lines"


def test_importing_the_transport_brings_in_no_framework() -> None:
    assert not {"litestar", "uvicorn", "langchain_core"} & imported_by("pizzabot_lines.transport")


# Who may come in


def test_the_socket_is_for_its_user_only_and_gone_when_the_server_has_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "lines.sock"
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}) as address:
            assert address == f"unix:{path}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_ISSOCK(path.stat().st_mode)
        assert not path.exists()

    play(scenario())


def test_the_other_end_of_a_socket_is_known_by_its_user() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert same_user(one)


def test_somebody_elses_process_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pizzabot_lines.transport.same_user", lambda _connection: False)
    logger = RecordingLogger()

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}, logger) as address:
            client = await RawClient.connect(address)
            assert await client.hear() is None
            await client.close()
        assert logger.events == ["lines.other_user_refused"]

    play(scenario())


@pytest.mark.parametrize(
    "first",
    [
        {"id": 1, "op": "identity"},
        {"id": 1, "op": "hello"},
        {"id": 1, "op": "hello", "token": TOKEN[:-1]},
        {"id": 1, "op": "hello", "token": [TOKEN]},
        {"id": 1, "op": "identity", "token": TOKEN},
    ],
)
def test_over_tcp_nothing_is_told_before_the_right_token(tmp_path: Path, first: Mapping[str, Any]) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {"port": 0, "token": TOKEN}) as address:
            client = await RawClient.connect(address)
            client.send(first, IDENTITY)
            heard = await client.hear()
            assert heard is not None
            assert heard["error"]["code"] == "unauthorized"
            assert await client.hear() is None
            await client.close()

    play(scenario())


def test_a_web_page_that_posts_to_the_port_is_cut_off_at_its_first_line(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {"port": 0, "token": TOKEN}) as address:
            client = await RawClient.connect(address)
            client.send(b"POST / HTTP/1.1\r\n", {"id": 1, "op": "hello", "token": TOKEN}, IDENTITY)
            heard = await client.hear()
            assert heard is not None
            assert heard["error"]["code"] == "invalid_json"
            assert await client.hear() is None
            await client.close()

    play(scenario())


def test_a_tcp_client_that_says_nothing_is_cut_off(tmp_path: Path) -> None:
    section = {"port": 0, "token": TOKEN, **limited(hello_seconds=0.05)}

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, section) as address:
            client = await RawClient.connect(address)
            assert await client.hear() is None
            await client.close()

    play(scenario())


@pytest.mark.parametrize("section", [{"port": 0}, {"port": 0, "token": "short"}, {"port": 65_536, "token": TOKEN}])
def test_a_port_without_a_long_token_is_refused_by_the_settings(section: Mapping[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as raised:
        transport_for(ScriptedHost(), tmp_path, section)
    assert "short'" not in str(raised.value)


# Taking the address


def test_what_a_crash_left_is_replaced_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "lines.sock"))
    left.close()

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}) as address:
            client = await RawClient.connect(address)
            assert "result" in await client.ask(IDENTITY)
            with pytest.raises(Conflict) as raised:
                await transport_for(scripted, tmp_path, {}).bind()
            assert raised.value.code == "socket_in_use"
            assert "result" in await client.ask(IDENTITY)
            await client.close()

    play(scenario())


def test_a_file_with_the_sockets_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lines.sock").write_text("precious")

    async def scenario() -> None:
        with pytest.raises(Conflict, match="remove the file"):
            await transport_for(ScriptedHost(), tmp_path, {}).bind()

    play(scenario())
    assert (tmp_path / "lines.sock").read_text() == "precious"


def test_a_port_that_is_taken_is_said_with_the_way_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            section = {"port": taken.getsockname()[1], "token": TOKEN}
            with pytest.raises(Conflict, match=r"\[transports.lines\] port") as raised:
                await transport_for(ScriptedHost(), tmp_path, section).bind()
        assert raised.value.code == "port_in_use"

    play(scenario())


def test_a_path_that_is_too_long_for_a_socket_is_said_with_the_way_out(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()

    async def scenario() -> None:
        with pytest.raises(InvalidRequest, match="shorter --data-root") as raised:
            await transport_for(ScriptedHost(), folder, {}).bind()
        assert raised.value.code == "socket_path_too_long"

    play(scenario())


def test_a_folder_that_is_not_there_is_an_error_that_names_the_socket(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(NotPermitted, match=r"lines\.sock") as raised:
            await transport_for(ScriptedHost(), tmp_path / "nowhere", {}).bind()
        assert raised.value.code == "socket_not_permitted"

    play(scenario())


@pytest.mark.parametrize("name", ["", "..", "a/b", "/x"])
def test_the_socket_is_in_the_data_root_whatever_its_name_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        transport_for(ScriptedHost(), tmp_path, {"socket": name})
    assert raised.value.code == "invalid_name"


def test_a_socket_that_was_bound_and_never_served_is_given_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with transport_for(ScriptedHost(), tmp_path, {}) as transport:
            await transport.bind()
            assert (tmp_path / "lines.sock").is_socket()
        assert not (tmp_path / "lines.sock").exists()

    play(scenario())


def test_without_a_host_there_is_nothing_to_serve(tmp_path: Path) -> None:
    from pizzabot_lines.settings import LinesSettings
    from pizzabot_lines.transport import create
    from serving import NoSecrets

    context = Context(
        name="lines",
        data_root=tmp_path,
        logger=RecordingLogger(),
        secrets=NoSecrets(),
        clock=lambda: 0.0,
        redact=str,
    )
    with pytest.raises(Unavailable) as raised:
        create(context, LinesSettings())
    assert raised.value.code == "no_host"


# What is said


@pytest.mark.parametrize(
    ("text", "code", "answered"),
    [
        (b"\n", "invalid_json", None),
        (b"{]\n", "invalid_json", None),
        (b"\xff\n", "invalid_json", None),
        (b'{"id": 1, "op": "status", "x": NaN}\n', "invalid_json", None),
        (b"[" * 100_000 + b"\n", "invalid_json", None),
        (b'{"id": 1, "op": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}\n", "invalid_json", None),
        (b"[1]\n", "invalid_argument", None),
        (b'{"op": "identity"}\n', "invalid_argument", None),
        (b'{"id": true, "op": "identity"}\n', "invalid_argument", None),
        (b'{"id": 7}\n', "invalid_argument", None),
        (b'{"id": 7, "op": "make_tea"}\n', "unknown_op", 7),
        (b'{"id": "a", "op": "state"}\n', "invalid_argument", "a"),
        (b'{"id": 7, "op": "state", "thread_id": 3}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "command", "thread_id": "t"}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "create_thread", "metadata": []}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "stop", "thread_id": "t", "wait_seconds": 1e9}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "models", "refresh": 1}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "events", "thread_id": "t", "channels": ["tea"]}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "events", "thread_id": "t", "channels": []}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "events", "thread_id": "t", "namespaces": ["a"]}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "events", "thread_id": "t", "since": -1}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "events", "thread_id": "t", "depth": true}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "threads", "status": "tired"}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "threads", "limit": 201}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "history", "thread_id": "t", "limit": 101}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "history", "thread_id": "t", "namespace": [1]}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "update_state", "thread_id": "t"}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "unsubscribe", "subscription": []}\n', "invalid_argument", 7),
        (b'{"id": 7, "op": "unsubscribe", "subscription": 9}\n', "no_such_subscription", 7),
    ],
)
def test_what_cannot_be_understood_is_refused_and_the_connection_goes_on(
    tmp_path: Path, text: bytes, code: str, answered: int | str | None
) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}) as address:
            client = await RawClient.connect(address)
            refused = await client.ask(text)
            assert (refused["id"], refused["error"]["code"]) == (answered, code)
            assert "result" in await client.ask(IDENTITY)
            await client.close()

    play(scenario())


def test_every_operation_has_its_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}) as address:
            client = await LinesClient.connect(address)
            assert (await client.call("identity"))["health"] == "Healthy"
            assert (await client.call("hello"))["service"] == "scripted"
            assert (await client.call("status"))["model"] == "scripted"
            assert (await client.call("models", refresh=True))["refreshed"] is True
            assert (await client.call("plugins"))["plugins"] == []
            assert (await client.call("create_thread", thread_id="t"))["thread_id"] == "t"
            assert (await client.call("thread", thread_id="t"))["status"] == "idle"
            rows = (await client.call("threads", limit=1, offset=0, status="idle"))["threads"]
            assert [(row["thread_id"], row["title"]) for row in rows] == [("t", "New conversation")]
            written = await client.call("update_state", thread_id="t", values={"note": "thin"}, as_node="model")
            assert written["values"] == {"note": "thin"}
            assert (await client.call("history", thread_id="t"))["states"] == [written]
            assert await client.call("delete_thread", thread_id="t") == {"deleted": True}
            await client.close()

    play(scenario())


def test_what_waits_for_a_person_is_told_for_one_thread_and_for_all(tmp_path: Path) -> None:
    def waiting(number: int) -> Interrupt:
        return Interrupt(
            interrupt_id=f"i-{number}",
            run_id=f"run-{number}",
            thread_id=f"t-{number}",
            owner=LOCAL.owner,
            kind=InterruptKind.INPUT,
            payload={"question": "Thin or thick?"},
            namespace=("tools:c1",),
            state=InterruptState.OPEN,
            created_at=1_800_000_000.0 + number,
        )

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}) as address:
            scripted.waiting.extend([waiting(1), waiting(2)])
            client = await LinesClient.connect(address)
            inbox = (await client.call("interrupts"))["interrupts"]
            assert [asked["interrupt_id"] for asked in inbox] == ["i-1", "i-2"]
            assert (await client.call("interrupts", thread_id="t-2"))["interrupts"] == [
                {
                    "interrupt_id": "i-2",
                    "thread_id": "t-2",
                    "run_id": "run-2",
                    "kind": "input",
                    "namespace": ["tools:c1"],
                    "payload": {"question": "Thin or thick?"},
                    "created_at": 1_800_000_002.0,
                }
            ]
            await client.close()

    play(scenario())


def test_an_error_that_nobody_foresaw_is_logged_and_tells_nothing(tmp_path: Path) -> None:
    logger = RecordingLogger()

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}, logger) as address:
            scripted.next_reply = RuntimeError("the password is hunter2")
            client = await RawClient.connect(address)
            refused = await client.ask({"id": 1, "op": "command", "thread_id": "t", "command": {}})
            assert refused["error"]["code"] == "internal_error"
            assert "hunter2" not in str(refused)
            await client.close()
        assert logger.events == ["lines.request_failed"]

    play(scenario())


def test_a_secret_in_an_error_is_hidden(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}) as address:
            scripted.next_reply = Unavailable("credentials", "the key hunter2 was refused")
            client = await RawClient.connect(address)
            refused = await client.ask({"id": 1, "op": "command", "thread_id": "t", "command": {}})
            assert refused["error"] == {
                "code": "credentials",
                "detail": "the key [redacted] was refused",
                "fields": {},
            }
            await client.close()

    play(scenario())


# How much of it


def test_a_line_that_is_too_long_ends_the_connection_with_a_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, limited(line_bytes=2_000)) as address:
            client = await RawClient.connect(address)
            long = {"id": 1, "op": "create_thread", "metadata": {"text": "x" * 1_000}}
            assert "result" in await client.ask(long)
            refused = await client.ask({**long, "metadata": {"text": "x" * 3_000}})
            assert refused["error"]["code"] == "line_too_long"
            assert await client.hear() is None
            await client.close()

    play(scenario())


def test_one_connection_too_many_is_closed_and_a_free_place_is_given_again(tmp_path: Path) -> None:
    logger = RecordingLogger()

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, limited(connections=2), logger) as address:
            clients = [await RawClient.connect(address) for _ in range(2)]
            for client in clients:
                assert "result" in await client.ask(IDENTITY)
            refused = await RawClient.connect(address)
            assert await refused.hear() is None
            assert logger.events == ["lines.too_many_connections"]
            await refused.close()

            clients[0].send({"id": 2, "op": "events", "thread_id": "t"})
            await scripted.observed("t")
            await clients.pop(0).close()
            await scripted.observed("t", 0)  # it has left; its place is free a moment later
            while True:
                later = await RawClient.connect(address)
                later.send(IDENTITY)
                if await later.hear() is not None:
                    break
                await later.close()
            for client in (*clients, later):
                await client.close()

    play(scenario())


def test_one_subscription_too_many_is_refused_until_one_is_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, limited(subscriptions=2)) as address:
            client = await RawClient.connect(address)
            for number in (1, 2):
                assert "result" in await client.ask({"id": number, "op": "events", "thread_id": "t"})
            assert (await client.ask({"id": 3, "op": "events", "thread_id": "t"}))["error"]["code"] == (
                "too_many_subscriptions"
            )
            ended = [await client.ask({"id": 4, "op": "unsubscribe", "subscription": 1}), await client.hear()]
            assert ended == [{"id": 1, "end": "unsubscribed"}, {"id": 4, "result": {}}]
            await scripted.observed("t", 1)
            assert "result" in await client.ask({"id": 3, "op": "events", "thread_id": "t"})
            assert (await client.ask({"id": 3, "op": "events", "thread_id": "t"}))["error"]["code"] == "id_in_use"
            await client.close()
            await scripted.observed("t", 0)

    play(scenario())


def test_a_slow_reader_loses_its_subscription_and_no_event(tmp_path: Path) -> None:
    section = limited(waiting_bytes=10_000, write_seconds=0.1)
    events = 100

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, section) as address:
            client = await RawClient.connect(address)
            client.send({"id": 1, "op": "events", "thread_id": "t", "since": 0})
            await scripted.observed("t")
            for number in range(events):
                scripted.append("t", "custom", {"payload": f"{number} " + "x" * 100_000})
            await scripted.observed("t", 0)  # nobody reads, so the server lets the observer go

            seen: list[int] = []
            said = await client.hear()
            while said is not None and "end" not in said:
                seen += [said["frame"]["seq"]] if "frame" in said else []
                said = await client.hear()
            assert said == {"id": 1, "end": "slow"}
            assert seen == list(range(1, len(seen) + 1))
            assert len(seen) < events

            client.send({"id": 2, "op": "events", "thread_id": "t", "since": seen[-1]})
            while seen[-1] < events:
                said = await client.hear()
                assert said is not None
                seen += [said["frame"]["seq"]] if "frame" in said else []
            assert seen == list(range(1, events + 1))
            await client.close()

    play(scenario())


def test_a_client_that_does_not_read_its_answers_is_cut_off(tmp_path: Path) -> None:
    section = limited(waiting_bytes=10_000, write_seconds=0.1)

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, section) as address:
            await scripted.threads.create("t", metadata={"text": "x" * 100_000}, caller=LOCAL)
            client = await RawClient.connect(address)
            client.send({"id": 0, "op": "events", "thread_id": "t"})
            await scripted.observed("t")
            client.send(*({"id": number, "op": "thread", "thread_id": "t"} for number in range(1, 200)))
            await scripted.observed("t", 0)  # its connection was ended, and with it what it held
            client.writer.transport.abort()

    play(scenario())


def test_silence_is_said_from_time_to_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, limited(heartbeat_seconds=0.02)) as address:
            client = await RawClient.connect(address)
            assert "result" in await client.ask({"id": 1, "op": "events", "thread_id": "t"})
            assert await client.hear() == {"id": 1, "silence": True}
            await client.close()

    play(scenario())


def test_a_follower_of_all_threads_hears_the_whole_and_then_silence(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, limited(heartbeat_seconds=0.02)) as address:
            client = await RawClient.connect(address)
            assert await client.ask({"id": 1, "op": "activity"}) == {"id": 1, "result": {"subscribed": True}}
            whole = {"complete": True, "threads": [], "deleted": [], "inbox": []}
            assert await client.hear() == {"id": 1, "activity": whole}
            assert await client.hear() == {"id": 1, "silence": True}
            client.send({"id": 2, "op": "unsubscribe", "subscription": 1})
            while (said := await client.hear()) == {"id": 1, "silence": True}:
                pass
            assert said == {"id": 1, "end": "unsubscribed"}
            await scripted.followed(0)
            await client.close()

    play(scenario())


def test_a_client_that_has_said_its_last_still_gets_its_answers(tmp_path: Path) -> None:
    """`echo '{"id": 1, "op": "identity"}' | nc -U lines.sock`, without a line end, too."""

    async def scenario() -> None:
        async with ScriptedHost() as scripted, served(scripted, tmp_path, {}) as address:
            client = await RawClient.connect(address)
            client.send(IDENTITY, b'{"id": 2, "op": "status"}')
            client.writer.write_eof()
            heard = [await client.hear(), await client.hear()]
            assert {said["id"] for said in heard if said is not None} == {1, 2}
            assert await client.hear() is None
            await client.close()

    play(scenario())


def test_stopping_ends_every_connection_within_the_hosts_patience(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted:
            async with asyncio.timeout(20), served(scripted, tmp_path, {}) as address:
                clients = [await RawClient.connect(address) for _ in range(3)]
                for client in clients:
                    assert "result" in await client.ask({"id": 1, "op": "events", "thread_id": "t", "since": 0})
                for number in range(100):  # nobody reads these
                    scripted.append("t", "custom", {"payload": f"{number} " + "x" * 100_000})
                loop = asyncio.get_running_loop()
                stopping = loop.time()
            assert loop.time() - stopping < 5
            await scripted.observed("t", 0)
            for client in clients:
                client.writer.transport.abort()

    play(scenario())


def test_the_client_hears_that_the_server_has_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ScriptedHost() as scripted:
            async with served(scripted, tmp_path, {}) as address:
                client = await LinesClient.connect(address)
                frames = client.events("t")
                reading = asyncio.ensure_future(anext(frames))
                await scripted.observed("t")
            with pytest.raises((Refused, StopAsyncIteration)):
                await reading
            await client.close()

    play(scenario())


def test_a_conversation_with_a_whole_host_from_the_command_line(tmp_path: Path) -> None:
    import sys

    import pizzabot_lines

    async def scenario() -> None:
        async with host(plugins=[("transport-lines", pizzabot_lines)], data_root=tmp_path) as running:
            transport = await running.maker.chosen("transports", "lines", section_name="transports", host=True)
            await transport.bind()
            serving = asyncio.create_task(transport.serve())
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "pizzabot_lines",
                transport.address,
                "four cheeses",
                stdout=asyncio.subprocess.PIPE,
            )
            said, _ = await process.communicate()
            assert (said.decode(), process.returncode) == ("four cheeses\n", 0)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    play(scenario())
