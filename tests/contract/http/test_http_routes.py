"""What each core route answers, and the ugly requests that must get an answer too (wire.md §2, §7, §8)."""

import asyncio
import json

import httpx
import pytest

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_hookspecs import Conflict, InvalidRequest, NotFound, NotPermitted, PizzabotError, TooLarge, Unavailable
from pizzabot_hookspecs.host import CommandOutcome, CommandReply, Health

START = {"id": 4, "method": "run.start", "params": {"input": {"messages": [{"type": "human", "content": "hi"}]}}}


def hold(command_id=4):
    return {
        "id": command_id,
        "method": "run.start",
        "params": {"input": {"messages": [{"type": "human", "content": "hold on"}]}},
    }


def asking(serve, test, **settings):
    """Run `test(http, host, served)` against a real server."""

    async def main():
        async with (
            ScriptedHost() as host,
            serve(host, **settings) as served,
            httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        ):
            await test(http, host, served)

    asyncio.run(main())


async def raw(port, request):
    """Send bytes, read until the server closes the connection or the answer is complete by its length."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0
        )
        return head, await reader.readexactly(length)
    finally:
        writer.close()
        await writer.wait_closed()


def test_the_root_says_who_answers(serve):
    async def test(http, host, _):
        answer = await http.get("/")
        assert answer.json() == host.identity()
        assert answer.headers["content-type"] == "application/json"
        assert "server" not in answer.headers

    asking(serve, test)


def test_ping_maps_health_to_a_status(serve):
    async def test(http, host, _):
        for health, status in [(Health.HEALTHY, 200), (Health.BUSY, 200), (Health.UNHEALTHY, 503)]:
            host.health_now = health
            answer = await http.get("/ping")
            assert (answer.status_code, answer.json()) == (status, {"status": health.value})

    asking(serve, test)


def test_status_models_and_plugins_are_the_hosts(serve):
    async def test(http, *_):
        assert (await http.get("/status")).json() == {"model": "scripted", "owner": "local"}
        assert (await http.get("/models")).json()["refreshed"] is False
        assert (await http.get("/models?refresh=1")).json()["refreshed"] is True
        assert (await http.get("/plugins")).json() == {"plugins": [], "owner": "local"}
        odd = await http.get("/models?refresh=perhaps")
        assert (odd.status_code, odd.json()["error"]) == (400, "invalid_parameter")
        assert set(odd.json()["fields"]) == {"refresh"}

    asking(serve, test)


def test_head_answers_like_get_without_a_body_and_options_says_what_is_allowed(serve):
    async def test(http, *_):
        for path in ("/", "/ping", "/status", "/schema"):
            answer = await http.head(path)
            assert (answer.status_code, answer.content) == (200, b"")
            assert int(answer.headers["content-length"]) == len((await http.get(path)).content)
        answer = await http.options("/threads/t/commands")
        assert answer.status_code == 204
        assert "POST" in answer.headers["allow"]

    asking(serve, test)


def test_a_thread_is_described_as_langgraph_does(serve):
    async def test(http, host, _):
        made = (await http.post("/threads", json={"thread_id": "t", "metadata": {"a": 1}})).json()
        assert set(made) == {
            "thread_id", "created_at", "updated_at", "metadata", "status", "values", "interrupts",
        }  # fmt: skip
        assert (made["thread_id"], made["metadata"], made["status"], made["values"]) == ("t", {"a": 1}, "idle", {})
        assert made["interrupts"] == {}
        assert made["created_at"].endswith("+00:00")
        await http.post("/threads/t/commands", json=START)
        await host.settled("t")
        read = (await http.get("/threads/t")).json()
        assert [message["content"] for message in read["values"]["messages"]] == ["hi", "hi"]
        assert (await http.delete("/threads/t")).json() == {"deleted": True}
        assert (await http.delete("/threads/t")).json() == {"deleted": False}
        assert (await http.get("/threads/t")).status_code == 404

    asking(serve, test)


def test_making_a_thread_needs_no_body_and_a_broken_one_makes_none(serve):
    async def test(http, host, _):
        for body in [b"", b"  "]:
            answer = await http.post("/threads", content=body)
            assert answer.status_code == 200
            assert answer.json()["thread_id"]
        made = len(host._conversations)
        for body in [
            b"{",
            b"[1]",
            b'"x"',
            b"null",
            b"\xff\xfe",
            b"[" * 3000,
            b'{"thread_id": "dinner",}',
            b'{"metadata": NaN}',
        ]:
            answer = await http.post("/threads", content=body)
            assert answer.status_code == 400
            assert answer.json()["error"] in ("invalid_json", "invalid_request")
        assert len(host._conversations) == made

    asking(serve, test)


def test_a_wrong_field_of_a_new_thread_is_named(serve):
    async def test(http, *_):
        for field, wrong in [
            ("thread_id", 1),
            ("metadata", [1]),
            ("if_exists", "maybe"),
            ("if_exists", []),
            ("ttl", 60),
            ("supersteps", [{"updates": []}]),
        ]:
            answer = await http.post("/threads", json={field: wrong})
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
            assert set(answer.json()["fields"]) == {field}

    asking(serve, test)


def test_a_thread_that_exists_is_409_unless_the_client_does_not_mind(serve):
    async def test(http, *_):
        for status, extra in [(200, {}), (409, {}), (409, {"if_exists": "raise"}), (200, {"if_exists": "do_nothing"})]:
            answer = await http.post("/threads", json={"thread_id": "t", **extra})
            assert answer.status_code == status
            assert status == 200 or answer.json()["error"] == "thread_exists"

    asking(serve, test)


OUTCOMES = [
    (CommandOutcome.DONE, 200),
    (CommandOutcome.REFUSED, 200),
    (CommandOutcome.MALFORMED, 400),
    (CommandOutcome.UNKNOWN, 422),
    (CommandOutcome.NOT_FOUND, 404),
    (CommandOutcome.UNAVAILABLE, 503),
]


def test_each_outcome_of_a_command_has_its_status_and_keeps_its_envelope(serve):
    envelope = {"type": "error", "id": 3, "error": "some_code", "message": "why", "fields": {"a": "b"}}

    async def test(http, host, _):
        for outcome, status in OUTCOMES:
            host.next_reply = CommandReply(outcome=outcome, envelope=envelope)
            answer = await http.post("/threads/t/commands", json=START)
            assert (answer.status_code, answer.json()) == (status, envelope)

    asking(serve, test)


NOT_JSON = [
    b"", b"{", b"NaN", b'{"a": NaN}', b"\xff", b"{} {}", b"[" * 100_000, b'{"a":' * 100_000, b"[" * 300 + b"]" * 300,
    b'["\\ud83d", ' + b"[" * 100_000, b'"\\ud83d" x', b'{"\\ud83d": Infinity}', b"1" * 5000 + b'"\\u0020"',
]  # fmt: skip


def test_a_body_that_is_not_json_is_an_envelope_for_commands_and_an_error_elsewhere(serve):
    async def test(http, host, _):
        for body in NOT_JSON:
            command = await http.post("/threads/t/commands", content=body)
            assert command.status_code == 400
            assert (command.json()["type"], command.json()["id"]) == ("error", None)
            assert command.json()["error"] == "invalid_argument"
            events = await http.post("/threads/t/stream/events", content=body)
            assert (events.status_code, events.json()["error"]) == (400, "invalid_json")
            assert host.calls == []

    asking(serve, test)


def test_half_a_surrogate_pair_and_numbers_without_bounds_reach_the_host_and_come_back(serve):
    async def test(http, host, _):
        body = b'{"id": 1, "method": "run.start", "params": {"n": 123456789012345678901234567890, "input": '
        body += b'{"messages": [{"content": "cut \\ud83d"}]}}}'
        assert (await http.post("/threads/t/commands", content=body)).json()["type"] == "success"
        await host.settled("t")
        state = (await http.get("/threads/t/state")).json()
        assert state["values"]["messages"][0]["content"] == "cut \ufffd"
        host.next_reply = CommandReply(outcome=CommandOutcome.DONE, envelope={"id": 2**70, "text": "\ud83d"})
        answer = await http.post("/threads/t/commands", json=START)
        assert answer.content == b'{"id": 1180591620717411303424, "text": "\\ud83d"}'

    asking(serve, test)


def test_a_command_carries_the_idempotency_key_and_the_caller(serve):
    async def test(http, host, _):
        headers = {"idempotency-key": "key-1", "x-request-id": "req-1"}
        first = await http.post("/threads/t/commands", json=START, headers=headers)
        again = await http.post("/threads/t/commands", json=START, headers=headers)
        assert first.json()["result"] == again.json()["result"]
        _, body, caller, key = host.calls[0]
        assert (body, caller.owner, caller.request_id, caller.system, key) == (START, "local", "req-1", False, "key-1")
        for bad in ("", "x" * 256, "a b"):
            odd = await http.post("/threads/t/commands", json=START, headers={"idempotency-key": bad})
            assert (odd.status_code, odd.json()["error"]) == (400, "invalid_idempotency_key")
        assert len(host.calls) == 2

    asking(serve, test)


@pytest.mark.parametrize(
    ("kind", "status"),
    [(InvalidRequest, 400), (NotPermitted, 403), (NotFound, 404), (Conflict, 409), (TooLarge, 413), (Unavailable, 503),
     (PizzabotError, 500)],
)  # fmt: skip
def test_an_error_of_the_host_keeps_code_and_fields_loses_secrets_and_gets_its_status(serve, kind, status):
    class Refusing(ScriptedHost):
        async def status(self, *, caller):
            raise kind("some_code", "the key hunter2 is wrong", fields={"key": "wrong"})

    async def main():
        async with Refusing() as host, serve(host) as served, httpx.AsyncClient(base_url=served.address) as http:
            answer = await http.get("/status")
            detail = "the key <redacted> is wrong"
            assert answer.status_code == status
            assert answer.json() == {"error": "some_code", "detail": detail, "fields": {"key": "wrong"}}
            host.next_reply = kind("some_code", "the key hunter2 is wrong")
            command = await http.post("/threads/t/commands", json=START)
            assert command.status_code == status
            assert command.json() == {"type": "error", "id": 4, "error": "some_code", "message": detail}

    asyncio.run(main())


def test_an_unforeseen_error_is_logged_with_its_request_id_and_tells_the_client_nothing(serve):
    class Broken(ScriptedHost):
        async def status(self, *, caller):
            raise RuntimeError("hunter2 /home/somebody/secret")

    async def main():
        async with Broken() as host, serve(host) as served, httpx.AsyncClient(base_url=served.address) as http:
            answer = await http.get("/status", headers={"x-request-id": "req-9"})
            assert answer.status_code == 500
            assert answer.json()["error"] == "internal_error"
            assert "req-9" in answer.json()["detail"]
            assert "hunter2" not in answer.text
            ((_, facts),) = served.log.of("http.request.failed")
            assert facts["request_id"] == "req-9"

    asyncio.run(main())


def test_a_mounted_application_that_breaks_gets_a_500_of_ours(serve):
    class Broken:
        prefix = "/broken"

        @staticmethod
        async def application(scope, receive, send):
            raise RuntimeError("hunter2")

    async def test(http, host, served):
        answer = await http.get("/broken/x")
        assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
        assert "hunter2" not in answer.text
        assert served.log.of("http.request.failed")

    async def main():
        async with ScriptedHost() as host:
            host.mounts = [Broken()]
            async with serve(host) as served, httpx.AsyncClient(base_url=served.address) as http:
                await test(http, host, served)

    asyncio.run(main())


def test_cancel_answers_at_once_or_waits_and_a_stale_id_touches_nothing(serve):
    async def test(http, host, _):
        run_id = (await http.post("/threads/t/commands", json=hold())).json()["result"]["run_id"]
        for query, status in [("", 202), ("?wait=0&action=interrupt", 202), ("?wait=1", 200), ("?wait=true", 200)]:
            stale = await http.post(f"/threads/t/runs/stale/cancel{query}")
            assert (stale.status_code, stale.json()) == (status, {"run_id": "stale", "status": "no_run"})
        assert (await http.get("/threads/t")).json()["status"] == "busy"
        stopped = await http.post(f"/threads/t/runs/{run_id}/cancel?wait=1&action=interrupt")
        assert (stopped.status_code, stopped.json()) == (200, {"run_id": run_id, "status": "cancelled"})
        unknown = await http.post("/threads/nowhere/runs/r/cancel")
        assert unknown.status_code == 202
        for query in ("?wait=2", "?action=rollback"):
            assert (await http.post(f"/threads/t/runs/{run_id}/cancel{query}")).json()["error"] == "invalid_parameter"

    asking(serve, test)


def test_a_run_that_does_not_end_in_time_is_409_cancellation_pending(serve):
    async def main():
        async with ScriptedHost() as host, serve(host) as served, httpx.AsyncClient(base_url=served.address) as http:
            run_id = (await http.post("/threads/t/commands", json=hold())).json()["result"]["run_id"]
            stop = host.runs.stop

            async def impatient(thread_id, run_id=None, /, *, caller, wait_seconds=10.0):
                return await stop(thread_id, run_id, caller=caller, wait_seconds=-1)

            host.runs.stop = impatient
            answer = await http.post(f"/threads/t/runs/{run_id}/cancel?wait=1")
            assert answer.status_code == 409
            assert answer.json()["status"] == answer.json()["error"] == "cancellation_pending"

    asyncio.run(main())


REFUSALS = [
    ("GET", "/nowhere", 404, "not_found"),
    ("GET", "/threads/t/nowhere", 404, "not_found"),
    ("PUT", "/threads", 405, "method_not_allowed"),
    ("GET", "/threads/t/commands", 405, "method_not_allowed"),
    ("GET", "/threads/" + "x" * 256, 400, "invalid_id"),
    ("GET", "/threads/caf%C3%A9", 400, "invalid_id"),
    ("GET", "/threads/a%20b/state", 400, "invalid_id"),
    ("DELETE", "/threads/a%00b", 400, "invalid_path"),
    ("GET", "/threads/nowhere", 404, "no_such_thread"),
    ("GET", "/threads/nowhere/state", 404, "no_such_thread"),
    # What LangGraph's clients may call and this server does not have.
    ("PATCH", "/threads/t", 405, "method_not_allowed"),
    ("PATCH", "/threads/t/state", 405, "method_not_allowed"),
    ("POST", "/threads/prune", 405, "method_not_allowed"),
    ("POST", "/threads/t/copy", 404, "not_found"),
    ("GET", "/threads/t/stream", 404, "not_found"),
    ("GET", "/threads/t/runs", 404, "not_found"),
    ("POST", "/threads/t/runs", 404, "not_found"),
    ("POST", "/threads/t/runs/stream", 404, "not_found"),
    ("POST", "/assistants/search", 404, "not_found"),
    ("POST", "/store/items/search", 404, "not_found"),
]


def test_refusals_have_an_error_and_a_detail(serve):
    async def test(http, *_):
        for method, path, status, code in REFUSALS:
            answer = await http.request(method, path)
            assert (answer.status_code, answer.json()["error"]) == (status, code), path
            assert answer.json()["detail"]

    asking(serve, test)


CONFUSING_PATHS = [
    b"/threads/a%2Fstate", b"/threads/x%2f..%2fy/state", b"/threads/../status", b"/threads/%2e%2e/status",
    b"/threads/./state", b"/threads/a%5Cb", b"//ping", b"/threads//state", b"/hooks/%2e%2e/status",
]  # fmt: skip


def test_a_path_that_readers_would_understand_differently_is_refused(serve):
    async def test(_, host, served):
        for path in CONFUSING_PATHS:
            head, body = await raw(served.port, b"GET " + path + b" HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400"), path
            assert json.loads(body)["error"] == "invalid_path"

    asking(serve, test)


def test_the_schema_is_json_has_every_route_and_loads_nothing(serve):
    async def test(http, *_):
        answer = await http.get("/schema")
        assert answer.headers["content-type"] == "application/vnd.oai.openapi+json"
        assert answer.content == (await http.get("/schema/openapi.json")).content
        assert b"http://" not in answer.content
        assert b"https://" not in answer.content
        document = answer.json()
        assert document["openapi"].startswith("3.")
        assert set(document["paths"]) == {
            "/", "/ping", "/status", "/models", "/plugins", "/inbox", "/threads", "/threads/{thread_id}",
            "/threads/list", "/threads/search", "/threads/count", "/threads/events", "/threads/{thread_id}/interrupts",
            "/threads/{thread_id}/state", "/threads/{thread_id}/state/{checkpoint_id}",
            "/threads/{thread_id}/state/checkpoint", "/threads/{thread_id}/history",
            "/threads/{thread_id}/commands", "/threads/{thread_id}/stream/events",
            "/threads/{thread_id}/runs/{run_id}/cancel", "/threads/{thread_id}/transcript",
            "/threads/{thread_id}/turns/{turn_id}/items", "/threads/{thread_id}/tool-calls/{call_id}/input",
            "/threads/{thread_id}/tool-calls/{call_id}/output", "/threads/{thread_id}/export",
            "/threads/{thread_id}/head", "/threads/{thread_id}/fork", "/threads/{thread_id}/compact",
            "/attachments", "/attachments/{attachment_id}", "/threads/{thread_id}/uploads",
            "/threads/{thread_id}/artifacts", "/threads/{thread_id}/artifacts/{file_path}",
            "/threads/{thread_id}/artifact-versions/{file_path}", "/threads/{thread_id}/runs/{run_id}/changes",
            "/threads/{thread_id}/runs/{run_id}/changes/{file_path}",
            "/settings", "/memories", "/memories/{memory_id}",
            "/local-folders", "/local-folders/browse", "/local-folders/{folder_id}",
            "/skills", "/skills/generate", "/skills/import", "/skills/{skill_id}", "/skills/{skill_id}/enabled",
            "/skills/{skill_id}/export", "/tools",
            "/plugins/reload", "/plugins/import", "/plugins/{name}", "/plugins/{name}/refresh",
            "/mcp-servers", "/mcp-servers/{server_id}", "/mcp-servers/{server_id}/enabled",
            "/mcp-servers/{server_id}/reconnect", "/mcp-servers/{server_id}/tools",
        }  # fmt: skip
        events = document["paths"]["/threads/{thread_id}/stream/events"]["post"]
        assert "channels" in events["requestBody"]["content"]["application/json"]["schema"]["properties"]
        assert set(events["responses"]["200"]["content"]) == {"text/event-stream"}
        for path in ("/threads/search", "/threads/count", "/threads/{thread_id}/history", "/threads/{thread_id}/state"):
            assert document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
        history = document["paths"]["/threads/{thread_id}/history"]["get"]
        assert {"limit", "before", "select"} <= {parameter["name"] for parameter in history["parameters"]}
        assert set(document["paths"]["/threads/events"]["get"]["responses"]["200"]["content"]) == {"text/event-stream"}
        cancel = document["paths"]["/threads/{thread_id}/runs/{run_id}/cancel"]["post"]
        assert {"wait", "action"} <= {parameter["name"] for parameter in cancel["parameters"]}

    asking(serve, test)


def test_a_body_that_trickles_is_408_and_a_head_that_trickles_is_cut_off(serve):
    async def test(http, host, served):
        slow_body = (
            b"POST /threads/t/commands HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        head, body = await raw(served.port, slow_body)
        assert head.startswith(b"HTTP/1.1 408")
        assert json.loads(body)["error"] == "body_too_slow"
        for begun in (b"", b"GET /ping HTTP/1.1\r\nhost:", b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\nGET /pi"):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(begun)
            try:
                rest = await reader.read()
                assert (b"Healthy" in rest) == (b"\r\n\r\n" in begun)
            except ConnectionResetError:
                assert b"\r\n\r\n" not in begun
            writer.close()
        assert (await http.get("/ping")).status_code == 200
        assert host.calls == []

    asking(serve, test, limits={"body_seconds": 0.2, "head_seconds": 0.2, "idle_seconds": 1})


def test_a_head_that_is_too_long_is_400(serve):
    async def test(_, __, served):
        request = b"GET /ping HTTP/1.1\r\nhost: localhost\r\nx-long: " + b"a" * 70_000
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(request)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        writer.close()

    asking(serve, test)


def test_connections_beyond_the_limit_are_refused_with_503(serve):
    async def test(http, _, served):
        waiting = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(3)]
        await asyncio.sleep(0)
        statuses = {(await http.get("/ping")).status_code}
        assert statuses == {503}
        for _, writer in waiting:
            writer.close()
            await writer.wait_closed()

    asking(serve, test, limits={"connections": 3})
