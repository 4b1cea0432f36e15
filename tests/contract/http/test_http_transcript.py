"""The transcript's routes: what is refused and how, ids of every kind, ranges, the end of an export (spec/12 §1.1)."""

import asyncio
import json

import httpx
import pytest
from test_http_routes import hold, raw

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_builtin_plugins.http_server import routes_transcript
from pizzabot_hookspecs import LOCAL, Caller, Conflict, TooLarge
from pizzabot_hookspecs.host import Export

TEXT = json.dumps({"of": "call-1", "é": "🍕"}, ensure_ascii=False)


def asking(serve, test, **settings):
    """Run `test(http, host, served)`; thread `t` has one turn, `run:r`, that called `call-1`."""

    async def main():
        async with (
            ScriptedHost() as host,
            serve(host, **settings) as served,
            httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        ):
            host.append("t", "lifecycle", {"event": "running", "graph_name": "scripted"}, run_id="r")
            call(host, "call-1", json.loads(TEXT))
            host.append("t", "lifecycle", {"event": "completed"}, run_id="r")
            await test(http, host, served)

    asyncio.run(main())


def call(host, call_id, given):
    began = {"event": "tool-started", "tool_call_id": call_id, "tool_name": "look", "input": given}
    host.append("t", "tools", began, namespace=("tools:1",), run_id="r")


def refusal(answer):
    body = answer.json()
    return answer.status_code, body["error"], set(body.get("fields", {}))


def test_queries_that_are_wrong_name_the_field(serve):
    async def test(http, *_):
        page, items, export = "/threads/t/transcript", "/threads/t/turns/run:r/items", "/threads/t/export"
        text = "/threads/t/tool-calls/call-1/input"
        for path, field in [
            (f"{page}?limit=0", "limit"), (f"{page}?limit=101", "limit"), (f"{page}?limit=-1", "limit"),
            (f"{page}?limit=1.5", "limit"), (f"{page}?limit=", "limit"), (f"{page}?limit=%D9%A1", "limit"),
            (f"{page}?limit=1&limit=2", "limit"), (f"{page}?before_seq=x", "before_seq"),
            (f"{page}?before_seq=9007199254740992", "before_seq"), (f"{page}?around_seq=" + "9" * 5000, "around_seq"),
            (f"{page}?before_seq=1&around_seq=1", "around_seq"), (f"{page}?beforeSeq=1", "beforeSeq"),
            (f"{page}?namespace=a%7C%7Cb", "namespace"), (f"{page}?namespace=" + "x" * 257, "namespace"),
            (f"{page}?namespace=" + "a%7C" * 32 + "a", "namespace"), (f"{items}?limit=201", "limit"),
            (f"{items}?head=run:r", "head"), (f"{export}?format=pdf", "format"), (f"{export}?limit=1", "limit"),
            (f"{export}?branches=some", "branches"), (f"{text}?range=1", "range"),
        ]:  # fmt: skip
            assert refusal(await http.get(path)) == (400, "invalid_argument", {field}), path
        for path, field in [
            (f"{page}?head=a%20b", "head"),
            (f"{page}?head=", "head"),
            ("/threads/t/turns/a b/items", "turn_id"),
        ]:
            assert refusal(await http.get(path)) == (400, "invalid_id", {field}), path

    asking(serve, test)


def test_bodies_that_are_wrong_name_the_field_and_change_nothing(serve):
    async def test(http, host, _):
        events, threads = host.events("t"), len(host.rows("local"))
        for method, path, body, code, field in [
            ("PUT", "head", {}, "invalid_argument", "turnId"),
            ("PUT", "head", {"turnId": 5}, "invalid_argument", "turnId"),
            ("PUT", "head", {"turn_id": "run:r"}, "invalid_argument", "turn_id"),
            ("PUT", "head", {"turnId": "a b"}, "invalid_id", "turnId"),
            ("POST", "fork", {"turn_id": "run:r"}, "invalid_argument", "turn_id"),
            ("POST", "fork", {"threadId": ["x"]}, "invalid_argument", "threadId"),
            ("POST", "fork", {"threadId": "a/b"}, "invalid_id", "threadId"),
            ("POST", "compact", {"keep": 5}, "invalid_argument", "keep"),
        ]:
            assert refusal(await http.request(method, f"/threads/t/{path}", json=body)) == (400, code, {field})
        for method, path in [("PUT", "head"), ("POST", "fork"), ("POST", "compact")]:
            broken = await http.request(method, f"/threads/t/{path}", content=b'{"turnId": ')
            assert refusal(broken)[:2] == (400, "invalid_json")
            big = await http.request(method, f"/threads/t/{path}", content=b" " * 2000)
            assert refusal(big)[:2] == (413, "request_too_large")
        odd = await http.post("/threads/t/compact", headers={"idempotency-key": "a b"})
        assert refusal(odd)[:2] == (400, "invalid_idempotency_key")
        assert (host.events("t"), len(host.rows("local"))) == (events, threads)

    asking(serve, test, limits={"json_bytes": 1024})


def test_a_namespace_is_joined_with_a_bar_or_with_nul(serve):
    async def test(http, *_):
        for joined in ("tools:a%7Ctools:b", "tools:a%00tools:b", "tools:a|tools:b"):
            answer = await http.get(f"/threads/t/transcript?namespace={joined}")
            assert answer.json()["namespace"] == ["tools:a", "tools:b"]

    asking(serve, test)


def test_a_turn_that_no_message_began_has_the_longest_id_there_is(serve):
    async def test(http, *_):
        for turn_id, status in [("run:" + "r" * 255, 404), ("run:" + "r" * 256, 400)]:
            assert (await http.get(f"/threads/t/turns/{turn_id}/items")).status_code == status

    asking(serve, test)


def test_a_fork_is_201_with_the_new_threads_row(serve):
    async def test(http, host, _):
        answer = await http.post("/threads/t/fork", json={"turnId": "run:r", "threadId": "copy"})
        assert answer.status_code == 201
        listed = (await http.get("/threads/list")).json()
        assert answer.json() == next(row for row in listed if row["threadId"] == "copy")
        assert (await http.post("/threads/t/fork")).status_code == 201
        assert refusal(await http.post("/threads/t/fork", json={"threadId": "copy"}))[:2] == (409, "thread_exists")

    asking(serve, test)


def test_a_busy_thread_keeps_its_head(serve):
    async def test(http, *_):
        await http.post("/threads/t/commands", json=hold())
        assert refusal(await http.put("/threads/t/head", json={"turnId": "run:r"}))[:2] == (409, "thread_busy")

    asking(serve, test)


def test_a_tools_text_is_plain_text_that_no_browser_takes_for_another(serve):
    async def test(http, *_):
        answer = await http.get("/threads/t/tool-calls/call-1/input")
        assert (answer.status_code, answer.text) == (200, TEXT)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["accept-ranges"] == "bytes"
        head = await http.head("/threads/t/tool-calls/call-1/input")
        assert (head.content, head.headers["content-length"]) == (b"", str(len(TEXT.encode())))
        missing = await http.get("/threads/t/tool-calls/call-1/output")
        assert refusal(missing)[:2] == (404, "no_such_tool_call")
        other = await http.get("/threads/t/tool-calls/call-1/input?item=another")
        assert refusal(other)[:2] == (404, "no_such_tool_call")

    asking(serve, test)


def test_one_range_of_a_tools_text_can_be_read_and_read_on(serve, monkeypatch):
    async def test(http, *_):
        whole, path = TEXT.encode(), "/threads/t/tool-calls/call-1/input"
        for in_thread_from in (1, 1_000_000):
            monkeypatch.setattr(routes_transcript, "ENCODE_IN_THREAD_CHARACTERS", in_thread_from)
            first = await http.get(path, headers={"range": "bytes=0-3"})
            assert (first.status_code, first.content) == (206, whole[:4])
            assert first.headers["content-range"] == f"bytes 0-3/{len(whole)}"
            etag = first.headers["etag"]
            rest = await http.get(path, headers={"range": "bytes=4-", "if-range": etag})
            assert (rest.status_code, first.content + rest.content) == (206, whole)
            changed = await http.get(path, headers={"range": "bytes=4-", "if-range": '"older"'})
            assert (changed.status_code, changed.content) == (200, whole)
            beyond = await http.get(path, headers={"range": "bytes=9999-"})
            assert refusal(beyond)[:2] == (416, "range_not_satisfiable")
            assert beyond.headers["content-range"] == f"bytes */{len(whole)}"
            known = await http.get(path, headers={"if-none-match": etag})
            assert (known.status_code, known.content) == (304, b"")

    asking(serve, test)


@pytest.mark.parametrize(
    ("written", "call_id"),
    [
        ("a%2Fb", "a/b"), ("a%2fb", "a/b"), ("a%252Fb", "a%2Fb"), ("%25", "%"), ("100%", "100%"), ("%5C", "\\"),
        ("%2E%2E", ".."), ("..%2F..", "../.."), ("%F0%9F%8D%95", "🍕"), ("a%00b", "a\0b"), ("%0D%0Ax:y", "\r\nx:y"),
        ("a+b", "a+b"), ("%3Fitem%3D1", "?item=1"), ("input", "input"), ("-", "-"),
    ],
)  # fmt: skip
def test_the_id_of_a_call_is_decoded_once(serve, written, call_id):
    async def test(_, host, served):
        call(host, call_id, {"found": call_id})
        request = f"GET /threads/t/tool-calls/{written}/input HTTP/1.1\r\nhost: localhost\r\n\r\n"
        head, body = await raw(served.port, request.encode())
        assert head.startswith(b"HTTP/1.1 200"), (head, body)
        assert json.loads(body) == {"found": call_id}

    asking(serve, test)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/threads/t/tool-calls/%FF/input", b"invalid_id"),
        ("/threads/a%2Fb/tool-calls/c/input", b"invalid_path"),
        ("/threads/%2E%2E/tool-calls/c/input", b"invalid_path"),
        ("/threads/t/tool-calls/../input", b"invalid_path"),
        ("/threads/t/tool-calls/a%2Fb/elsewhere", b"invalid_path"),
        ("/threads/t/turns/a%2Fb/items", b"invalid_path"),
    ],
)
def test_a_slash_is_an_ids_only_where_ids_may_have_one(serve, path, code):
    async def test(_, __, served):
        head, body = await raw(served.port, f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        assert (head.startswith(b"HTTP/1.1 400"), code in body) == (True, True), body

    asking(serve, test)


def test_an_export_is_an_attachment_with_its_length(serve):
    async def test(http, host, _):
        answer = await http.get("/threads/t/export")
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        assert answer.headers["content-disposition"] == 'attachment; filename="t.md"'
        assert int(answer.headers["content-length"]) == len(answer.content)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (answer.headers["pizzabot-as-of-seq"], answer.headers["pizzabot-turns"]) == ("3", "1")
        assert (await http.head("/threads/t/export")).content == b""
        await host.transcripts.exports_closed()

    asking(serve, test)


class Chunks:
    """What an export hands out: `pieces`, an exception among them is raised; tells when it is closed."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)
        self.closed = asyncio.Event()

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.pieces:
            raise StopAsyncIteration
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def aclose(self):
        self.closed.set()


def exporting(host, made):
    async def export(thread_id, /, **_):
        if isinstance(made, Exception):
            raise made
        return made

    host.transcripts.export = export


def file(chunks, *, size, name="t.md"):
    return Export(media_type="text/markdown", file_name=name, size=size, as_of_seq=1, turns=1, chunks=chunks)


def test_an_export_that_is_refused_is_a_status_and_no_file(serve):
    async def test(http, host, served):
        for made, status, code in [
            (TooLarge("export_too_large", "hunter2 is too long"), 413, "export_too_large"),
            (Conflict("thread_busy", "later"), 409, "thread_busy"),
            (OSError("disk"), 500, "internal_error"),
        ]:
            exporting(host, made)
            answer = await http.get("/threads/t/export")
            assert refusal(answer)[:2] == (status, code)
            assert "hunter2" not in answer.text
            assert "disk" not in answer.text
            assert "content-disposition" not in answer.headers
        assert served.log.of("http.download.failed")

    asking(serve, test)


@pytest.mark.parametrize(
    ("pieces", "size"), [((b"abc", OSError("disk")), 6), ((b"abc",), 6), ((b"abc", b"def", b"g"), 6)]
)
def test_a_part_is_never_taken_for_the_whole(serve, pieces, size):
    async def test(http, host, served):
        chunks = Chunks(*pieces)
        exporting(host, file(chunks, size=size))
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get("/threads/t/export")
        await chunks.closed.wait()
        await served.log.noticed("http.download.failed")
        assert (await http.get("/ping")).status_code == 200

    asking(serve, test)


def test_a_client_that_does_not_read_its_export_is_let_go(serve):
    async def test(_, host, served):
        chunks = Chunks(*[b"x" * 1_000_000] * 100)
        exporting(host, file(chunks, size=100_000_000))
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET /threads/t/export HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await chunks.closed.wait()
        await served.log.noticed("http.download.stalled")
        assert chunks.pieces
        writer.close()

    asking(serve, test, limits={"write_seconds": 0.2})


def test_an_export_that_is_still_made_ends_with_its_client(serve):
    async def test(_, host, served):
        begun, ended = asyncio.Event(), asyncio.Event()

        async def export(thread_id, /, **_):
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        host.transcripts.export = export
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET /threads/t/export HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await begun.wait()
        writer.close()
        await ended.wait()

    asking(serve, test)


def test_a_files_name_breaks_out_of_no_header(serve):
    async def test(http, host, _):
        exporting(host, file(Chunks(b"x"), size=1, name='a"b\r\nx: y\\/é.md'))
        answer = await http.get("/threads/t/export")
        assert answer.headers["content-disposition"] == 'attachment; filename="a_b__x: y___.md"'
        assert "x" not in answer.headers

    asking(serve, test)


def test_what_is_somebody_elses_is_404_like_what_is_not_there(serve):
    async def test(http, host, _):
        await host.threads.create("theirs", caller=Caller(owner="somebody-else"))
        for method, path in [
            ("GET", "transcript"), ("GET", "turns/m/items"), ("GET", "tool-calls/c/input"),
            ("GET", "tool-calls/c/output"), ("GET", "export"), ("PUT", "head"), ("POST", "fork"), ("POST", "compact"),
        ]:  # fmt: skip
            body = {"turnId": "m"} if path == "head" else None
            answer = await http.request(method, f"/threads/theirs/{path}", json=body)
            assert refusal(answer)[:2] == (404, "no_such_thread"), path
        assert await host.threads.page(caller=LOCAL)

    asking(serve, test)


def test_a_page_of_another_origin_may_read_ranges_and_counts(serve):
    async def test(http, *_):
        origin = {"origin": "http://page.test"}
        answer = await http.get("/threads/t/export", headers=origin)
        exposed = answer.headers["access-control-expose-headers"]
        assert all(name in exposed for name in ("Content-Range", "Pizzabot-As-Of-Seq", "Pizzabot-Turns", "ETag"))
        preflight = await http.options("/threads/t/head", headers={**origin, "access-control-request-method": "PUT"})
        assert "If-Range" in preflight.headers["access-control-allow-headers"]

    asking(serve, test, allowed_origins=["http://page.test"])
