"""Who gets in: Host, Origin, CORS, size, token (spec/01 §1, §2; spec/09; statements 38 to 44)."""

import asyncio
import socket

import httpx
import pytest

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_builtin_plugins.http_server.settings import HttpSettings
from pizzabot_hookspecs import Conflict, InvalidRequest, NotPermitted

LISTED = "http://localhost:5173"

TOKEN = "t" * 32
RUN = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"type": "human", "content": "hi"}]}}}
OPEN_WITHOUT_TOKEN = {("GET", "/ping")}


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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "127.example.com"])
def test_a_bind_beyond_loopback_needs_a_token_then_a_long_one_then_origins(make_transport, host):
    def refusal(**settings):
        with pytest.raises(NotPermitted) as refused:
            asyncio.run(make_transport(None, host=host, **settings).bind())
        assert host in refused.value.detail
        return refused.value.code

    assert refusal() == "token_required"
    assert refusal(token="  ") == "token_required"
    assert refusal(token="t" * 31) == "token_too_short"
    assert refusal(token=TOKEN) == "origins_required"
    assert refusal(token=TOKEN, allowed_origins=[]) == "origins_required"


def test_a_wildcard_bind_with_token_and_origins_serves_literal_addresses_and_no_foreign_names(serve):
    async def test(http, _, served):
        bearer = {"authorization": f"Bearer {TOKEN}"}
        for host, status in [
            (f"127.0.0.1:{served.port}", 200),
            ("192.0.2.9:8080", 200),
            ("box.lan", 200),
            ("evil.example", 403),
        ]:
            url = f"http://127.0.0.1:{served.port}/"
            assert (await http.get(url, headers={"host": host, **bearer})).status_code == status, host

    asking(serve, test, host="0.0.0.0", token=TOKEN, allowed_origins="https://a.example", allowed_hosts="box.lan")


def test_a_port_in_use_is_a_conflict_that_names_the_place_and_the_way_out(make_transport):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Conflict) as refused:
            asyncio.run(make_transport(None, port=port).bind())
    assert refused.value.code == "port_in_use"
    assert f"127.0.0.1:{port}" in refused.value.detail
    assert "--port N" in refused.value.detail


def test_a_second_transport_cannot_take_a_port_that_the_first_has_bound_and_does_not_serve_yet(make_transport):
    async def main():
        async with make_transport(None) as first:
            await first.bind()
            port = int(first.address.rpartition(":")[2])
            with pytest.raises(Conflict) as refused:
                await make_transport(None, port=port).bind()
            assert refused.value.code == "port_in_use"

    asyncio.run(main())


@pytest.mark.parametrize(("host", "code"), [("a..b", "unknown_host"), ("192.0.2.77", "address_not_available")])
def test_an_address_that_is_not_ours_is_refused_by_name(make_transport, host, code):
    transport = make_transport(None, host=host, token=TOKEN, allowed_origins=["https://a.example"])
    with pytest.raises(InvalidRequest) as refused:
        asyncio.run(transport.bind())
    assert refused.value.code == code
    assert host in refused.value.detail


def test_a_loopback_host_header_is_ours_with_any_port(serve):
    async def test(http, *_):
        for host in ("127.0.0.1", "127.9.9.9", "localhost", "localhost:1", "LOCALHOST:5173", "[::1]", "[::1]:8080"):
            assert (await http.get("/", headers={"host": host})).status_code == 200, host

    asking(serve, test)


FOREIGN_HOSTS = [
    "evil.example", "evil.example:8080", "127.example.com", "127.0.0.1.nip.io", "localhost.evil.example",
    "user@localhost", "127.0.0.1:80:80", "192.168.1.5", "[::2]", "localhost:x", "",
]  # fmt: skip


def test_a_rebound_name_in_the_host_header_is_refused_on_every_path(serve):
    async def test(http, scripted, served):
        for host in FOREIGN_HOSTS:
            for method, path in [("GET", "/"), ("GET", "/ping"), ("POST", "/threads/t/commands"), ("OPTIONS", "/x")]:
                answer = await http.request(method, path, headers={"host": host}, json=RUN)
                assert (answer.status_code, answer.json()["error"]) == (403, "host_not_allowed"), (host, path)
        assert scripted.calls == []
        assert len(served.log.of("http.refused")) == 4 * len(FOREIGN_HOSTS)

    asking(serve, test)


def test_an_unknown_origin_is_refused_before_any_side_effect_and_without_cors_headers(serve):
    async def test(http, host, _):
        for origin in ("https://evil.example", "null", "http://localhost:1", "http://127.0.0.1.evil.example", ""):
            for kind in ("text/plain", "application/json"):
                headers = {"origin": origin, "content-type": kind}
                answer = await http.post("/threads/t/commands", headers=headers, json=RUN)
                assert (answer.status_code, answer.json()["error"]) == (403, "origin_not_allowed"), origin
                assert not [name for name in answer.headers if name.startswith("access-control")]
            preflight = {"origin": origin, "access-control-request-method": "POST"}
            assert (await http.options("/threads/t/commands", headers=preflight)).status_code == 403
        assert host.calls == []

    asking(serve, test)


def test_the_servers_own_origins_and_the_listed_ones_pass_with_cors_headers(serve):
    async def test(http, _, served):
        own = [f"http://{name}:{served.port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        for origin in [*own, LISTED]:
            answer = await http.get("/", headers={"origin": origin})
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == origin
            assert answer.headers["vary"] == "Origin"
        assert "access-control-allow-origin" not in (await http.get("/")).headers

    asking(serve, test, allowed_origins=[LISTED])


def test_null_passes_only_when_it_is_listed(serve):
    async def test(http, *_):
        assert (await http.get("/", headers={"origin": "null"})).status_code == 200
        assert (await http.get("/", headers={"origin": LISTED})).status_code == 403

    asking(serve, test, allowed_origins=["null"])


def test_a_preflight_is_answered_without_the_token(serve):
    async def test(http, *_):
        headers = {"origin": LISTED, "access-control-request-method": "POST"}
        answer = await http.options("/threads/t/commands", headers=headers)
        assert answer.status_code == 204
        assert answer.content == b""
        assert set(answer.headers["access-control-allow-methods"].split(", ")) == {
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
        }  # fmt: skip
        allowed = answer.headers["access-control-allow-headers"]
        assert all(name in allowed for name in ("Authorization", "Content-Type", "X-Trigger-Secret"))

    asking(serve, test, token=TOKEN, allowed_origins=[LISTED])


def test_every_route_needs_the_token_except_the_listed_ones(serve, make_transport):
    """Enumerates the application, so that a route that is added later is checked too (Langflow CVE-2026-33017)."""
    routes = _all_routes(make_transport)
    assert {
        ("GET", "/status"),
        ("POST", "/threads/x/commands"),
        ("GET", "/schema"),
        ("GET", "/"),
        ("GET", "/hooks"),
    } <= routes

    async def test(http, host, _):
        for method, path in routes | {("GET", "/nowhere"), ("POST", "/ping/"), ("HEAD", "/status")}:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"bearer {TOKEN}"},
                            {"authorization": TOKEN}, {"authorization": f"Bearer {TOKEN} "[:-2]},
                            {"cookie": f"token={TOKEN}"}, {"x-api-key": TOKEN}):  # fmt: skip
                answer = await http.request(method, f"{path}?token={TOKEN}&access_token={TOKEN}", headers=headers)
                expected = 200 if (method, path) in OPEN_WITHOUT_TOKEN else 401
                assert answer.status_code == expected, (method, path, headers)
        assert host.calls == []
        assert (await http.get("/status", headers={"authorization": f"Bearer {TOKEN}"})).status_code == 200

    async def with_mount():
        async with ScriptedHost() as host:
            host.mounts = [Mounted("/hooks")]
            async with (
                serve(host, token=TOKEN) as served,
                httpx.AsyncClient(base_url=served.address, timeout=20) as http,
            ):
                await test(http, host, served)

    asyncio.run(with_mount())


def _all_routes(make_transport):
    from pizzabot_builtin_plugins.http_server.application import build
    from pizzabot_builtin_plugins.http_server.services import Services

    transport = make_transport(ScriptedHost())
    context, settings = transport._context, transport._settings
    services = Services(
        host=context.host, settings=settings, logger=context.logger, clock=context.clock, redact=context.redact,
        streams=transport._streams, sockets=transport._sockets,
    )  # fmt: skip
    _, core, mounts = build(services, transport._doors, [Mounted("/hooks")])
    found = {(method, _filled(route.path)) for route in core.routes for method in route.methods if method != "OPTIONS"}
    return found | {("GET", prefix) for prefix in mounts.prefixes} | {("POST", "/hooks/anything")}


def _filled(path):
    return "/".join("x" if "{" in segment else segment for segment in path.split("/"))


class Mounted:
    def __init__(self, prefix, application=None):
        self.prefix = prefix
        self.application = application or echo_path


async def echo_path(scope, receive, send):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    text = f"{scope['method']} {scope['root_path']} {scope['path']} {len(body)}"
    await send({"type": "http.response.body", "body": text.encode()})


def test_a_json_body_over_the_limit_is_refused_before_the_token_is_looked_at(serve):
    async def test(http, host, served):
        for kind in ("application/json", "application/vnd.x+json; charset=utf-8", "text/plain"):
            answer = await http.post("/threads/t/commands", content=b"x" * 2049, headers={"content-type": kind})
            assert (answer.status_code, answer.json()["error"]) == (413, "request_too_large")
        assert host.calls == []
        assert len(served.log.of("http.refused")) == 3

    asking(serve, test, token=TOKEN, limits={"json_bytes": 2048})


def test_a_chunked_body_is_counted_on_the_bytes_that_arrive(serve):
    async def test(http, host, _):
        async def pieces(size):
            for _ in range(size):
                yield b" " * 1024

        headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
        over = await http.post("/threads/t/commands", content=pieces(3), headers=headers)
        assert (over.status_code, over.json()["error"]) == (413, "request_too_large")
        assert host.calls == []
        within = await http.post("/threads", content=pieces(2), headers=headers)
        assert within.status_code == 200

    asking(serve, test, token=TOKEN, limits={"json_bytes": 2048})


def test_the_default_limit_is_one_mebibyte_and_a_client_that_sends_more_reads_the_answer(serve):
    assert HttpSettings().limits.json_bytes == 1024 * 1024

    async def test(http, *_):
        answer = await http.post("/threads", content=b" " * (4 * 1024 * 1024))
        assert answer.status_code == 413
        assert (await http.get("/ping")).status_code == 200

    asking(serve, test)


def test_a_mounted_application_takes_large_uploads_but_not_large_json(serve):
    async def main():
        async with ScriptedHost() as host:
            host.mounts = [Mounted("/hooks")]
            async with serve(host, limits={"json_bytes": 2048}) as served, httpx.AsyncClient() as http:
                url = f"{served.address}/hooks/in"
                upload = await http.post(url, content=b"x" * 300_000, headers={"content-type": "application/zip"})
                assert upload.text == "POST /hooks /hooks/in 300000"
                large = await http.post(url, content=b"x" * 3000, headers={"content-type": "application/json"})
                assert large.status_code == 413

    asyncio.run(main())


def test_a_mount_that_clashes_is_refused_and_logged_and_the_others_are_served(serve):
    async def main():
        async with ScriptedHost() as host:
            bad = ["/threads", "/threads/x", "/schema", "/", "", "hooks", "/a/", "/a/../b", "/..", "/a//b"]
            host.mounts = [Mounted("/hooks"), Mounted("/hooks"), Mounted("/hooks/deep"), *map(Mounted, bad)]
            async with serve(host) as served, httpx.AsyncClient(base_url=served.address) as http:
                assert (await http.get("/hooks/deep/x")).text == "GET /hooks/deep /hooks/deep/x 0"
                assert (await http.get("/hooks/other")).text == "GET /hooks /hooks/other 0"
                assert (await http.get("/hooksy")).status_code == 404
                refused = [(facts["prefix"], facts["routes"]) for _, facts in served.log.of("http.mount_refused")]
            assert [prefix for prefix, _ in refused] == ["/hooks", *bad]
            assert all(name.endswith("Mounted") for _, name in refused)

    asyncio.run(main())


def test_core_routes_are_served_when_the_hosts_mounts_fail(serve):
    class Broken(ScriptedHost):
        async def http_routes(self):
            raise RuntimeError("a plugin broke")

    async def main():
        async with Broken() as host, serve(host) as served, httpx.AsyncClient(base_url=served.address) as http:
            assert (await http.get("/ping")).status_code == 200
            assert served.log.of("http.mounts_failed")

    asyncio.run(main())


REQUEST_IDS = [("abc-1.2_3:4", True), ("a" * 200, True), ("has space", False), ('quote"', False), ("<b>", False)]


def test_a_request_id_is_echoed_cut_and_harmless_or_minted(serve):
    async def test(http, _, served):
        for given, kept in REQUEST_IDS:
            answer = await http.get("/", headers={"x-request-id": given})
            echoed = answer.headers["x-request-id"]
            assert echoed == given[:128] if kept else (len(echoed) == 36 and echoed != given)
            assert served.log.of("http.request")[-1][1]["request_id"] == echoed

    asking(serve, test)


def test_the_access_log_has_no_query_and_its_level_follows_the_status(serve):
    async def test(http, host, served):
        await http.get("/?secret=hunter2")
        await http.get("/ping")
        await http.get("/status")
        await http.get("/nowhere?secret=hunter2")
        host.next_reply = RuntimeError("hunter2")
        failed = await http.post("/threads/t/commands", json=RUN)
        lines = [(level, facts["path"], facts["status"]) for level, facts in served.log.of("http.request")]
        assert lines == [
            ("info", "/", 200),
            ("debug", "/ping", 200),
            ("debug", "/status", 200),
            ("warning", "/nowhere", 404),
            ("error", "/threads/t/commands", 500),
        ]
        accesses = [facts for _, facts in served.log.of("http.request")]
        assert set(accesses[0]) == {"request_id", "method", "path", "status", "ms"}
        assert "hunter2" not in str(accesses)
        assert failed.json()["error"] == "internal_error"
        assert failed.headers["x-request-id"] in failed.json()["detail"]
        assert "hunter2" not in failed.text
        assert "Traceback" not in failed.text

    asking(serve, test)
