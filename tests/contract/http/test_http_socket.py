"""What is said over the one socket: subscriptions, activity, commands, what was sent wrongly (docs/use/protocol.md)."""

import asyncio
import json

import httpx
import pytest
from socket_client import ALL, greeted, over_sse, talking

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_builtin_plugins.http_server.frames import CHUNK_BYTES
from pizzabot_builtin_plugins.http_server.subscriptions import MAX_SEQ
from pizzabot_builtin_plugins.http_server.websocket.commands import MAX_COMMANDS
from pizzabot_builtin_plugins.http_server.websocket.table import MAX_SUBSCRIPTIONS, MAX_THREADS
from pizzabot_hookspecs import LOCAL, Unavailable
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState


def test_events_are_those_of_the_event_stream_key_by_key(serve):
    async def test(socket, host, served):
        host.append("t", "messages", {"text": "é🍕\u2028"}, namespace=("model_request:1",), node="model", run_id="r")
        host.append("t", "custom", {"name": "weather", "payload": 21})
        await socket.start("t", "one two three")
        await host.settled("t")
        number = len(host.events("t"))
        await socket.subscribe(1, since=0)
        assert await socket.events(1, number) == await over_sse(served, "t", number, since=0)

    talking(serve, test)


def test_two_subscriptions_of_one_thread_have_their_own_channels_and_cursors(serve):
    async def test(socket, host, _):
        for n in range(4):
            host.append("t", "custom" if n % 2 else "updates", {"n": n})
        await socket.subscribe(1, channels=["custom"], since=0)
        first = await socket.events(1, 2)
        await socket.subscribe(2, channels=["updates"], since=1)
        second = await socket.events(2, 1)
        assert [event["seq"] for event in first] == [2, 4]
        assert [event["seq"] for event in second] == [3]

    talking(serve, test)


def test_a_socket_has_as_many_threads_as_it_says_and_each_gets_its_own_events(serve):
    async def test(socket, host, _):
        for number in range(MAX_THREADS):
            await socket.follow(number, f"t{number}")
        await socket.subscribe(900, "one-more")
        refused = await socket.next()
        assert (refused["type"], refused["sub"], refused["code"]) == ("closed", 900, "too_many_threads")
        await socket.follow(901, "t7")  # a thread that it has already
        for number in range(MAX_THREADS):
            host.append(f"t{number}", "custom", {"at": number})
        found = {}
        while len(found) < MAX_THREADS + 1:
            message = await socket.next()
            found[message["sub"]] = [event["params"]["data"]["at"] for event in message["events"]]
        assert found == {number: [number] for number in range(MAX_THREADS)} | {901: [7]}
        await socket.send("unsubscribe", sub=3)
        assert (await socket.next())["code"] == "unsubscribed"
        await socket.follow(902, "one-more")

    talking(serve, test)


def test_one_subscription_more_than_the_limit_is_refused_and_room_is_made_again(serve):
    async def test(socket, *_):
        for number in range(MAX_SUBSCRIPTIONS):
            await socket.follow(number)
        await socket.send("subscribe", sub=999, activity=True)
        assert (await socket.next())["code"] == "too_many_subscriptions"
        await socket.send("unsubscribe", sub=0)
        assert (await socket.next())["code"] == "unsubscribed"
        await socket.follow(0)

    talking(serve, test)


def test_nothing_comes_of_a_subscription_after_its_end_and_its_number_is_free(serve):
    async def test(socket, host, _):
        await socket.follow(1)
        await socket.send("unsubscribe", sub=1)
        assert await socket.next() == {
            "type": "closed", "sub": 1, "code": "unsubscribed", "message": "the client wanted no more of it",
        }  # fmt: skip
        await host.observed("t", 0)
        host.append("t", "custom", {"payload": 1})
        await socket.send("ping")
        assert await socket.next() == {"type": "pong"}
        await socket.follow(1, since=1)

    talking(serve, test)


def test_a_deleted_thread_ends_its_subscriptions_and_no_other(serve):
    async def test(socket, host, _):
        host.append("gone", "custom", {"payload": 1})
        await socket.follow(1, "gone", since=1)
        await socket.follow(2, "gone", since=1)
        await socket.follow(3, "stays")
        await host.threads.delete("gone", caller=LOCAL)
        ended = [await socket.next(), await socket.next()]
        assert {(message["sub"], message["code"]) for message in ended} == {
            (1, "thread_deleted"),
            (2, "thread_deleted"),
        }
        host.append("stays", "custom", {"payload": 1})
        assert len(await socket.events(3, 1)) == 1

    talking(serve, test)


def test_a_cursor_beyond_the_end_closes_the_subscription_and_not_the_socket(serve):
    async def test(socket, host, _):
        host.append("t", "custom", {"payload": 1})
        await socket.subscribe(1, since=99)
        closed = await socket.next()
        assert (closed["type"], closed["sub"], closed["code"]) == ("closed", 1, "cursor_ahead")
        await socket.follow(1, since=0)

    talking(serve, test)


def test_a_gap_is_the_first_event(serve):
    async def test(socket, host, _):
        for number in range(6):
            host.append("t", "custom", {"payload": number})
        host.forget_before("t", 4)
        await socket.subscribe(1, since=1)
        gap, *rest = await socket.events(1, 4)
        assert gap["params"]["data"]["payload"] == {"requested": 1, "earliest": 4, "latest": 6}
        assert [event["seq"] for event in rest] == [4, 5, 6]

    talking(serve, test)


def test_a_message_has_at_most_so_many_bytes_of_events_and_a_larger_event_comes_alone(serve):
    async def test(socket, host, _):
        sizes = [100_000, 100_000, 100_000, 400_000, 10, 10]
        for size in sizes:
            host.append("t", "custom", {"payload": "x" * size})
        await socket.follow(1, since=0)
        numbers = []
        while sum(numbers) < len(sizes):
            text = await socket.connection.recv()
            message = json.loads(text)
            numbers.append(len(message["events"]))
            assert len(text) <= CHUNK_BYTES + 100 or numbers[-1] == 1
        assert numbers == [2, 1, 1, 2]

    talking(serve, test)


def test_the_first_activity_is_complete_and_the_next_ones_are_what_changed(serve):
    async def test(socket, host, served):
        await host.threads.create("old", caller=LOCAL)
        await socket.send("subscribe", sub=5, activity=True)
        assert await socket.next() == {"type": "subscribed", "sub": 5}
        first = await socket.next()
        assert (first["type"], first["sub"], first["complete"], first["inbox"]) == ("activity", 5, True, [])
        assert [row["threadId"] for row in first["threads"]] == ["old"]
        await socket.start("new", "hold on")
        changed = await socket.until(lambda message: message["type"] == "activity" and message["threads"])
        assert (changed[-1]["complete"], "inbox" in changed[-1]) == (False, False)
        assert (changed[-1]["threads"][0]["threadId"], changed[-1]["threads"][0]["status"]) == ("new", "busy")
        host.set_waiting(waiting("old"))
        asked = (await socket.until(lambda message: message.get("inbox")))[-1]
        async with httpx.AsyncClient(base_url=served.address) as http:
            assert (await http.get("/inbox")).json()["interrupts"] == asked["inbox"]
        await host.threads.delete("old", caller=LOCAL)
        assert (await socket.until(lambda message: message.get("deleted")))[-1]["deleted"] == ["old"]
        await socket.send("unsubscribe", sub=5)
        await socket.until(lambda message: message.get("code") == "unsubscribed")
        await host.followed(0)

    talking(serve, test)


def waiting(thread):
    return Interrupt(
        interrupt_id="i1",
        thread_id=thread,
        run_id="r",
        owner="local",
        kind=InterruptKind.INPUT,
        state=InterruptState.OPEN,
        payload={"question": "Which size?"},
        namespace=(),
        created_at=1.0,
    )


def test_a_command_is_answered_as_over_http_with_its_thread_and_key(serve):
    async def test(socket, host, _):
        await socket.start("a", "hello", number=7, idempotencyKey="k1")
        reply = await socket.next()
        assert (reply["type"], reply["thread"], reply["reply"]["type"], reply["reply"]["id"]) == (
            "reply", "a", "success", 7,
        )  # fmt: skip
        await socket.start("a", "hello", number=8, idempotencyKey="k1")
        assert (await socket.next())["reply"]["result"] == reply["reply"]["result"]
        thread, body, caller, key = host.calls[0]
        assert (thread, sorted(body), key) == ("a", ["id", "method", "params"], "k1")
        assert caller.request_id

    talking(serve, test)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"thread": "a/b", "id": 3, "method": "run.start"}, "invalid_id"),
        ({"thread": "a", "id": 3, "method": "run.start", "idempotencyKey": "é"}, "invalid_idempotency_key"),
        ({"thread": "a", "id": 3, "method": "run.start", "idempotencyKey": 1}, "invalid_idempotency_key"),
        ({"thread": "a", "id": 3, "method": "tea.make"}, "unknown_command"),
        ({"thread": "a", "id": 3, "method": "state.get"}, "no_such_thread"),
    ],
)
def test_a_command_that_is_refused_is_a_reply_with_its_id(serve, message, code):
    async def test(socket, *_):
        await socket.send("command", **message)
        reply = await socket.next()
        assert (reply["thread"], reply["reply"]["type"]) == (message["thread"], "error")
        assert (reply["reply"]["id"], reply["reply"]["error"]) == (3, code)

    talking(serve, test)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unavailable("storage_failed", "the key hunter2 is bad"), "storage_failed"),
        (ValueError("hunter2"), "internal_error"),
    ],
)
def test_what_breaks_in_a_command_or_a_subscription_is_told_without_secrets(serve, error, code):
    async def test(socket, host, served):
        async def observe(*_, **__):
            raise error

        host.next_reply = error
        host.runs.observe = observe
        await socket.start("t", "hello", number=4)
        reply = await socket.next()
        assert (reply["reply"]["id"], reply["reply"]["error"]) == (4, code)
        await socket.subscribe(1)
        closed = await socket.next()
        assert (closed["type"], closed["code"]) == ("closed", code)
        assert "hunter2" not in json.dumps([reply, closed])
        failures = [*served.log.of("http.socket.command_failed"), *served.log.of("http.socket.subscription_failed")]
        assert len(failures) == (2 if code == "internal_error" else 0)

    talking(serve, test)


class Slow(ScriptedHost):
    """Commands wait until they are let go; `begun` has their ids in order."""

    def __init__(self):
        super().__init__()
        self.begun, self.running, self.most, self.gates = [], 0, 0, {}
        self.asked = asyncio.Queue()
        right = self.runs.command

        async def command(thread, body, /, **named):
            self.begun.append(body["id"])
            self.running += 1
            self.most = max(self.most, self.running)
            self.asked.put_nowait(body["id"])
            try:
                await self.gates.setdefault(thread, asyncio.Event()).wait()
                return await right(thread, {**body, "method": "tea.make"}, **named)
            finally:
                self.running -= 1

        self.runs.command = command

    def open(self, thread):
        self.gates.setdefault(thread, asyncio.Event()).set()


def slowly(serve, test, **settings):
    async def main():
        async with asyncio.timeout(20), Slow() as host, serve(host, **settings) as served, greeted(served) as socket:
            await test(socket, host, served)

    asyncio.run(main())


def test_commands_of_one_thread_are_done_in_order_and_those_of_another_do_not_wait_for_them(serve):
    async def test(socket, host, _):
        for number in (1, 2, 3):
            await socket.start("a", "x", number=number)
        await socket.start("b", "x", number=9)
        assert [await host.asked.get(), await host.asked.get()] == [1, 9]
        host.open("b")
        assert (await socket.next())["reply"]["id"] == 9
        host.open("a")
        assert [(await socket.next())["reply"]["id"] for _ in range(3)] == [1, 2, 3]
        assert host.begun == [1, 9, 2, 3]

    slowly(serve, test)


def test_with_so_many_commands_unanswered_nothing_more_is_read_until_one_is(serve):
    async def test(socket, host, _):
        for number in range(MAX_COMMANDS + 1):
            await socket.start(f"t{number}", "x", number=number)
        await socket.send("ping")
        for _ in range(MAX_COMMANDS):
            await host.asked.get()
        assert host.asked.empty()
        host.open("t0")
        assert (await socket.next())["reply"]["id"] == 0
        assert await host.asked.get() == MAX_COMMANDS
        assert await socket.next() == {"type": "pong"}
        assert host.most == MAX_COMMANDS
        for number in range(MAX_COMMANDS + 1):
            host.open(f"t{number}")

    slowly(serve, test)


def test_events_go_on_while_commands_wait(serve):
    async def test(socket, host, _):
        await socket.follow(1, "live")
        for number in range(MAX_COMMANDS + 1):
            await socket.start("a", "x", number=number)
        await host.asked.get()
        host.append("live", "custom", {"payload": 1})
        assert len(await socket.events(1, 1)) == 1
        host.open("a")

    slowly(serve, test)


WRONG = [
    (b"\x00\x01", "invalid_argument"),
    (b'{"type":"ping"}', "invalid_argument"),
    ("", "invalid_json"),
    ("{", "invalid_json"),
    ("NaN", "invalid_json"),
    ("[" * 200 + "]" * 200, "invalid_json"),
    ('{"type":"ping","x":' + '{"a":' * 200 + "1" + "}" * 200 + "}", "invalid_json"),
    ("[1, 2]", "invalid_argument"),
    ("null", "invalid_argument"),
    ('"ping"', "invalid_argument"),
    ("{}", "unknown_type"),
    ('{"type":"tea"}', "unknown_type"),
    ('{"type":["ping"]}', "unknown_type"),
    ('{"type":"ready"}', "unknown_type"),
    ('{"type":"hello"}', "invalid_argument"),
    ('{"type":"unsubscribe"}', "invalid_argument"),
    ('{"type":"unsubscribe","sub":5}', "no_such_subscription"),
    ('{"type":"command","id":1}', "invalid_argument"),
    ('{"type":"command","thread":7,"id":1}', "invalid_argument"),
    *(
        (json.dumps({"type": "subscribe", "thread": "t", "channels": ["custom"], "sub": sub}), "invalid_argument")
        for sub in (None, True, 1.0, 1.5, "1", -1, MAX_SEQ + 1, 2**70, [1], {})
    ),
]


def test_whatever_is_wrong_with_a_message_is_answered_and_closes_nothing(serve):
    async def test(socket, *_):
        for frame, code in WRONG:
            await socket.connection.send(frame)
            answer = await socket.next()
            assert (answer["type"], answer["code"]) == ("error", code), (frame[:60], answer)
            assert "\n" not in answer["message"]
        await socket.follow(1)

    talking(serve, test)


@pytest.mark.parametrize(
    "wanted",
    [
        {"thread": "t"},
        {"thread": "t", "channels": []},
        {"thread": "t", "channels": ["teas"]},
        {"thread": "t", "channels": ALL, "since": True},
        {"thread": "t", "channels": ALL, "since": -2},
        {"thread": "t", "channels": ALL, "depth": "1"},
        {"thread": "t", "channels": ALL, "namespaces": "x"},
        {"thread": "a/b", "channels": ALL},
        {"thread": "", "channels": ALL},
        {"thread": 7, "channels": ALL},
        {"channels": ALL},
        {"activity": False},
        {"activity": 1},
        {"activity": True, "thread": "t"},
    ],
)
def test_a_subscription_that_is_wrong_ends_alone(serve, wanted):
    async def test(socket, *_):
        await socket.send("subscribe", sub=1, **wanted)
        closed = await socket.next()
        assert (closed["type"], closed["sub"], closed["code"]) == ("closed", 1, "invalid_subscription")
        await socket.follow(1)

    talking(serve, test)


def test_a_number_that_is_in_use_is_refused_and_its_subscription_goes_on(serve):
    async def test(socket, host, _):
        await socket.follow(1)
        await socket.subscribe(1, "other")
        answer = await socket.next()
        assert (answer["type"], answer["code"]) == ("error", "sub_in_use")
        await socket.send("subscribe", sub=1, activity=True)
        assert (await socket.next())["code"] == "sub_in_use"
        host.append("t", "custom", {"payload": 1})
        assert len(await socket.events(1, 1)) == 1

    talking(serve, test)


def test_two_sockets_see_the_same_and_one_that_goes_takes_nothing_from_the_other(serve):
    async def test(socket, host, served):
        async with greeted(served) as other:
            await socket.follow(1)
            await other.follow(1)
            await host.observed("t", 2)
            await other.start("t", "one two three")
            await host.settled("t")
            number = len(host.events("t"))
            assert await socket.events(1, number) == await other.events(1, number)
        await host.observed("t", 1)
        host.append("t", "custom", {"payload": 1})
        assert (await socket.events(1, 1))[0]["seq"] == number + 1

    talking(serve, test)


def test_a_connection_that_is_cut_in_a_run_is_taken_up_with_its_cursor_and_gets_the_log(serve):
    async def test(first, host, served):
        await first.follow(1)
        await first.start("t", "hold " + " ".join(f"w{n}" for n in range(300)))
        seen = await first.events(1, 4)
        first.connection.transport.abort()
        await host.observed("t", 0)
        host.release("t")
        async with greeted(served) as second:
            await second.subscribe(1, since=seen[-1]["seq"])
            await host.settled("t")
            log = host.events("t")
            seen += await second.events(1, len(log) - len(seen))
        stored = [
            [event.event_id, event.seq, event.method, event.data, event.timestamp, list(event.namespace)]
            for event in log
        ]
        assert stored == [
            [
                event["event_id"],
                event["seq"],
                event["method"],
                json.dumps(event["params"]["data"], ensure_ascii=False).encode(),
                event["params"]["timestamp"],
                event["params"]["namespace"],
            ]
            for event in seen
        ]

    talking(serve, test)


@pytest.mark.parametrize(("agent", "namespace"), [("langgraph-sdk-py/0.4.14", []), ("node", ["model_request:1"])])
def test_the_python_view_is_for_its_user_agent_alone(serve, agent, namespace):
    async def test(_, host, served):
        host.append("t", "messages", {"a": 1}, namespace=("model_request:1",))
        async with greeted(served, user_agent_header=agent) as socket:
            await socket.follow(1, since=0)
            assert (await socket.events(1, 1))[0]["params"]["namespace"] == namespace

    talking(serve, test)
