"""The routes of a thread's files and of attachments, on a real host with a real disk (spec/12 §2.1, spec/01 §6)."""

import asyncio
import hashlib
import io
import json
import zipfile
from urllib.parse import quote

import httpx
import pytest
from test_http_routes import raw

from pizzabot.testing.hosts import host as open_host
from pizzabot_hookspecs import LOCAL

MEDIA = "/threads/t/artifacts"


def asking(serve, test, **settings):
    """Run `test(http, host, served)` on a real host that has the thread `t`."""

    async def main():
        async with open_host() as host, serve(host, **settings) as served:
            await host.threads.create("t", caller=LOCAL)
            async with httpx.AsyncClient(base_url=served.address, timeout=20) as http:
                await test(http, host, served)

    asyncio.run(main())


def at(path, kind="artifacts"):
    """The address of a file: each segment encoded once."""
    return f"/threads/t/{kind}" + "".join(f"/{quote(segment, safe='')}" for segment in path[1:].split("/"))


async def save(http, path, content, base=None):
    return await http.put(at(path), json={"content": content, "baseSha256": base})


def sha(text):
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def code(answer):
    return answer.status_code, answer.json()["error"]


def test_a_file_is_written_read_listed_and_deleted(serve):
    async def test(http, *_):
        saved = await save(http, "/notes/a.md", "hello")
        assert (saved.status_code, saved.json()["version"]) == (200, 1)
        got = await http.get(at("/notes/a.md"))
        assert (got.status_code, got.text) == (200, "hello")
        assert got.headers["etag"] == f'"{sha("hello")}"'
        assert got.headers["content-type"] == "text/markdown; charset=utf-8"
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["cache-control"] == "private, no-cache"
        assert got.headers["content-disposition"].startswith("inline;")
        listed = (await http.get("/threads/t/artifacts")).json()
        assert [row["path"] for row in listed["artifacts"]] == ["/notes/a.md"]
        assert listed["cursor"] is None
        gone = await http.delete(at("/notes/a.md"))
        assert (gone.status_code, gone.json()["deleted"]) == (200, True)
        assert code(await http.get(at("/notes/a.md"))) == (404, "no_such_file")
        restored = await http.post(at("/notes/a.md", "artifact-versions"), json={"version": 1})
        assert (restored.status_code, restored.json()["version"]) == (200, 3)
        versions = (await http.get(at("/notes/a.md", "artifact-versions"))).json()["versions"]
        assert [row["version"] for row in versions] == [3, 2, 1]
        assert (await http.get(at("/notes/a.md"), params={"version": 1})).text == "hello"

    asking(serve, test)


@pytest.mark.parametrize(
    "name", ["%41", "a%2Fb", "a b", "日本.md", "100%", "é", "a+b", "a?b#c", "a;b", "'\"", "archive"]
)
def test_names_are_decoded_once_and_come_back_as_they_are(serve, name):
    async def test(http, *_):
        for path in (f"/{name}", f"/folder/{name}"):
            assert (await save(http, path, name)).json()["path"] == path
            assert (await http.get(at(path))).text == name
            assert (await http.get(at(path, "artifact-versions"))).json()["versions"][0]["path"] == path
            assert (await http.delete(at(path))).json()["path"] == path

    asking(serve, test)


def test_one_range_is_206_and_a_bad_one_416(serve):
    async def test(http, *_):
        await save(http, "/a.txt", "0123456789")
        some = await http.get(at("/a.txt"), headers={"range": "bytes=2-4"})
        assert (some.status_code, some.text, some.headers["content-range"]) == (206, "234", "bytes 2-4/10")
        bad = await http.get(at("/a.txt"), headers={"range": "bytes=10-"})
        assert (*code(bad), bad.headers["content-range"]) == (416, "range_not_satisfiable", "bytes */10")
        same = await http.get(at("/a.txt"), headers={"if-none-match": f'"{sha("0123456789")}"'})
        assert (same.status_code, same.content) == (304, b"")
        other = await http.get(at("/a.txt"), headers={"range": "bytes=2-4", "if-range": '"other"'})
        assert (other.status_code, len(other.text)) == (200, 10)
        head = await http.head(at("/a.txt"))
        assert (head.status_code, head.headers["content-length"], head.content) == (200, "10", b"")

    asking(serve, test)


def test_each_refusal_of_a_write_has_its_status(serve):
    async def test(http, host, _):
        await save(http, "/a.md", "one")
        changed = await save(http, "/a.md", "two", base="0" * 64)
        assert code(changed) == (412, "artifact_changed")
        assert changed.json()["fields"] == {"sha256": sha("one"), "version": "1"}
        assert code(await save(http, "/a.md", "two")) == (412, "artifact_changed")
        assert code(await save(http, "/b", "x" * (2 * 1024 * 1024 + 1))) == (413, "file_too_large")
        assert (await save(http, "/b", "\x01" * (2 * 1024 * 1024))).status_code == 200
        assert code(await save(http, "/c", "x" * (14 * 1024 * 1024))) == (413, "request_too_large")
        half = await http.put(at("/c"), content=b'{"content": "\\ud800"}', headers={"content-type": "application/json"})
        assert code(half) == (415, "not_text")
        for body in ({}, {"content": 1}, {"content": "x", "baseSha256": 1}):
            assert code(await http.put(at("/c"), json=body)) == (400, "invalid_request")
        assert code(await http.put("/threads/none/artifacts/a", json={"content": "x"})) == (404, "no_such_thread")
        assert code(await save(http, "/" + "x" * 1_025, "x")) == (400, "invalid_path")
        assert code(await http.post(at("/c"), json={})) == (405, "method_not_allowed")
        assert code(await http.get(at("/a.md"), params={"version": 9})) == (404, "no_such_version")
        assert code(await http.get(at("/a.md"), params={"version": "x"})) == (400, "invalid_argument")
        assert code(await http.get(MEDIA, params={"cursor": "x"})) == (400, "invalid_argument")
        async with host.engine.still("t"):
            assert code(await save(http, "/d", "x")) == (409, "thread_busy")
            assert code(await http.delete(at("/a.md"))) == (409, "thread_busy")

    asking(serve, test)


def test_paths_that_mean_two_things_are_refused(serve):
    async def test(_, host, served):
        for path in [b"/a%2fb", b"/..%2f", b"/%2e%2e/a", b"/a//b", b"/a%5cb", b"/a%00", b"/%ff", b"/%252e%252e/a"]:
            request = b"GET /threads/t/artifacts" + path + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"
            head, body = await raw(served.port, request)
            assert head.startswith(b"HTTP/1.1 400"), path
            assert json.loads(body)["error"] == "invalid_path", path

    asking(serve, test)


def test_where_the_agent_has_other_files_nothing_of_the_threads_can_be_put(serve):
    async def test(http, *_):
        for name in ("local/notes", "memories", "skills/clerk", "conversation_history", "large_tool_results", "blobs"):
            refused = await save(http, f"/{name}/x.md", "x")
            assert code(refused) == (400, "invalid_path"), name
        assert (await save(http, "/skillset/local/x.md", "x")).status_code in (200, 201)

    asking(serve, test)


def test_html_svg_and_xml_leave_as_attachments_under_their_own_names(serve):
    async def test(http, *_):
        for name in ("a.html", "a.svg", "a.xml", 'ü".bin'):
            up = await http.post("/threads/t/uploads", files={"file": (name, b"<p>\0" if name[0] == "ü" else b"<p>")})
            assert up.status_code == 201
            got = await http.get(at(up.json()["path"]))
            assert got.headers["content-disposition"].startswith("attachment; ")
            assert got.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert got.headers["content-disposition"] == "attachment; filename=\"__.bin\"; filename*=UTF-8''%C3%BC%22.bin"

    asking(serve, test)


def test_an_upload_is_one_file_and_a_name_that_is_taken_gets_a_number(serve):
    async def test(http, *_):
        for expected in ("/uploads/a.png", "/uploads/a-1.png"):
            up = await http.post("/threads/t/uploads", files={"file": ("a.png", expected.encode(), "image/png")})
            assert (up.status_code, up.json()["path"], up.json()["inline"]) == (201, expected, True)
            assert up.json()["sha256"] == sha(expected)
        two = await http.post("/threads/t/uploads", files=[("file", ("a", b"1")), ("file", ("b", b"2"))])
        assert code(two) == (400, "invalid_multipart")
        assert code(await http.post("/threads/t/uploads", files={"other": ("a", b"1")})) == (400, "invalid_multipart")
        assert code(await http.post("/threads/t/uploads", data={"x": "1"})) == (400, "invalid_multipart")
        missing = await http.post("/threads/t/uploads", files={"x": (None, b"1")})
        assert code(missing) == (400, "missing_file")
        assert code(await http.post("/threads/t/uploads", json={})) == (400, "invalid_multipart")
        cut = b"--b\r\ncontent-disposition: form-data; name=file; filename=a\r\n\r\nhalf"
        half = await http.post(
            "/threads/t/uploads", content=cut, headers={"content-type": "multipart/form-data; boundary=b"}
        )
        assert code(half) == (400, "invalid_multipart")
        assert code(await http.post("/threads/x/uploads", files={"file": ("a", b"1")})) == (404, "no_such_thread")
        listed = (await http.get(MEDIA)).json()["artifacts"]
        assert sorted(row["path"] for row in listed) == ["/uploads/a-1.png", "/uploads/a.png"]

    asking(serve, test)


def test_fifty_mebibytes_are_taken_and_one_more_is_413(serve):
    async def test(http, *_):
        size = 50 * 1024 * 1024
        up = await http.post("/threads/t/uploads", files={"file": ("big.bin", bytes(size))})
        assert (up.status_code, up.json()["size"]) == (201, size)
        some = await http.get(at("/uploads/big.bin"), headers={"range": "bytes=0-1048575"})
        assert (some.status_code, len(some.content)) == (206, 1024 * 1024)
        more = await http.post("/threads/t/uploads", files={"file": ("big.bin", bytes(size + 1))})
        assert code(more) == (413, "file_too_large")
        assert len((await http.get(MEDIA)).json()["artifacts"]) == 1

    asking(serve, test)


def test_an_archive_holds_what_was_pinned(serve):
    async def test(http, *_):
        await save(http, "/a.md", "one")
        await save(http, "/a.md", "two", base=sha("one"))
        made = await http.post("/threads/t/artifacts/archive", json={"items": [{"path": "/a.md", "version": 1}]})
        assert (made.status_code, made.headers["content-type"]) == (200, "application/zip")
        with zipfile.ZipFile(io.BytesIO(made.content)) as opened:
            assert opened.read("a.md") == b"one"
        for items, refused in [
            ([{"path": "/../a", "version": 1}], (400, "invalid_path")),
            ([{"path": "/a.md", "version": 1}] * 51, (413, "archive_too_large")),
            ([{"path": "/a.md", "version": 7}], (404, "no_such_version")),
            ([{"path": "/a.md"}], (400, "invalid_request")),
            ("x", (400, "invalid_request")),
        ]:
            answer = await http.post("/threads/t/artifacts/archive", json={"items": items})
            assert code(answer) == refused

    asking(serve, test)


def test_changes_of_a_run_that_is_not_there_are_404(serve):
    async def test(http, *_):
        assert code(await http.get("/threads/t/runs/r/changes")) == (404, "no_such_run")
        assert code(await http.get("/threads/t/runs/r/changes/a.md")) == (404, "no_such_run")

    asking(serve, test)


def test_what_a_run_did_is_told_with_the_difference(serve):
    async def test(http, host, _):
        await save(http, "/notes/a%2Fb.md", "one\ntwo\n")
        arguments = json.dumps({"file_path": "/notes/a%2Fb.md", "old_string": "one", "new_string": "three"})
        text = f"[[tool edit_file {arguments}]] [[then]] done"
        body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"type": "human", "content": text}]}}}
        run_id = (await http.post("/threads/t/commands", json=body)).json()["result"]["run_id"]
        await host.engine.when_idle()
        told = (await http.get(f"/threads/t/runs/{run_id}/changes")).json()
        row = {"path": "/notes/a%2Fb.md", "op": "changed", "sizeBefore": 8, "sizeAfter": 10, "added": 1, "removed": 1}
        assert told == {"files": [row], "truncated": False}
        one = (await http.get(f"/threads/t/runs/{run_id}/changes/notes/a%252Fb.md")).json()
        assert one["diff"] == ("--- /notes/a%2Fb.md\n+++ /notes/a%2Fb.md\n@@ -1,2 +1,2 @@\n-one\n+three\n two\n")
        page = (await http.get("/threads/t/transcript")).json()
        assert [item["files"] for item in page["turns"][0]["items"] if item["kind"] == "changes"] == [[row]]

    asking(serve, test)


def test_of_two_clients_that_save_one_file_one_is_told_to_look_again(serve):
    async def test(http, *_):
        await save(http, "/a.md", "first")
        answers = await asyncio.gather(*(save(http, "/a.md", text, base=sha("first")) for text in ("one", "two")))
        assert sorted(answer.status_code for answer in answers) == [200, 412]
        kept = next(answer for answer in answers if answer.status_code == 200).json()
        refused = next(answer for answer in answers if answer.status_code == 412).json()
        assert refused["fields"] == {"sha256": kept["sha256"], "version": "2"}

    asking(serve, test)


def test_an_attachment_is_kept_under_an_id_and_given_back_for_ever(serve):
    async def test(http, host, _):
        made = await http.post("/attachments", files={"file": ("ü.png", b"\x89PNG", "image/png")})
        row = made.json()
        assert made.status_code == 201
        assert row == {
            "id": row["id"],
            "url": f"attachment://{row['id']}",
            "mediaType": "image/png",
            "filename": "ü.png",
            "sizeBytes": 4,
        }
        got = await http.get(f"/attachments/{row['id']}")
        assert (got.content, got.headers["content-type"]) == (b"\x89PNG", "image/png")
        assert got.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert got.headers["content-disposition"] == "inline; filename=\"_.png\"; filename*=UTF-8''%C3%BC.png"
        kept = host.ground.data_root / "attachments" / row["id"]
        assert kept.stat().st_mode & 0o777 == 0o600
        assert (await http.delete(f"/attachments/{row['id']}")).json() == {"deleted": True}
        assert (await http.delete(f"/attachments/{row['id']}")).json() == {"deleted": False}
        assert not kept.exists()
        assert code(await http.get(f"/attachments/{row['id']}")) == (404, "no_such_attachment")

    asking(serve, test)


def test_attachments_are_checked_in_order(serve):
    async def test(http, *_):
        async def add(name, content, kind="application/octet-stream", **data):
            return await http.post("/attachments", files={"file": (name, content, kind)}, data=data)

        assert code(await add("a.exe", b"")) == (400, "empty")
        assert code(await add("a.exe", bytes(10 * 1024 * 1024 + 1))) == (413, "too_large")
        assert code(await add("a.exe", b"x")) == (400, "unsupported_type")
        assert code(await add("a.png", bytes(3_932_161))) == (413, "too_large")
        assert (await add("a.png", bytes(3_932_160))).status_code == 201
        assert code(await add("a.pdf", bytes(4_718_593))) == (413, "too_large")
        assert code(await add("a.pdf", bytes(11 * 1024 * 1024 + 1))) == (413, "request_too_large")
        assert (await add("a.exe", b"x", "Image/PNG; x=1")).json()["mediaType"] == "image/png"
        assert (await add("a.RS", b"x")).json()["mediaType"] == "text/plain"
        assert (await add("a.docx", b"x")).json()["mediaType"].endswith("wordprocessingml.document")
        assert code(await add("a.txt", b"x", thread_id="none")) == (404, "no_such_thread")
        assert (await add("a.txt", b"x", thread_id="t")).status_code == 201
        assert code(await http.post("/attachments", data={"a": "b"})) == (400, "invalid_multipart")

    asking(serve, test)


def test_a_client_that_goes_in_the_middle_of_its_file_leaves_nothing(serve):
    async def test(http, host, served):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        part = b"--b\r\ncontent-disposition: form-data; name=file; filename=a.bin\r\n\r\n" + bytes(2 * 1024 * 1024)
        head = b"POST /threads/t/uploads HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000000\r\n"
        writer.write(head + b"content-type: multipart/form-data; boundary=b\r\n\r\n" + part)
        await writer.drain()
        gone = asyncio.create_task(served.log.noticed("http.request"))
        writer.close()
        await writer.wait_closed()
        await gone
        assert served.log.of("http.request.failed") == []
        assert [one for one in (host.ground.data_root / "blobs").rglob("*") if one.is_file()] == []
        assert (await http.get(MEDIA)).json()["artifacts"] == []

    asking(serve, test)


def test_without_the_token_no_byte_of_a_file_is_kept(serve):
    async def test(http, host, _):
        for path in ("/threads/t/uploads", "/attachments"):
            answer = await http.post(path, files={"file": ("a.txt", bytes(3 * 1024 * 1024))})
            assert answer.status_code == 401
        assert (await http.put(at("/a"), json={"content": "x" * 2_000_000})).status_code in (401, 413)
        for folder in ("blobs", "attachments"):
            assert [one for one in (host.ground.data_root / folder).rglob("*") if one.is_file()] == []

    asking(serve, test, token="t" * 32)
