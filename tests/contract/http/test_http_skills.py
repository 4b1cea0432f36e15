"""Skills over HTTP, with a real host behind a real server (spec/01 §7)."""

import asyncio
import io
import json
import zipfile

import httpx
import pytest

from pizzabot.testing import host
from pizzabot_builtin_plugins.http_server.body_limits import (
    LARGE_BODIES,
    SKILL_BODY_BYTES,
    BodyLimits,
)

BODY = {"name": "Mail", "description": "reads mail", "body": "do it"}
TOKEN = "t" * 32


def asking(serve, test, **settings):
    async def main():
        async with (
            host() as opened,
            serve(opened, **settings) as served,
            httpx.AsyncClient(base_url=served.address, timeout=30) as http,
        ):
            await test(http, opened)

    asyncio.run(main())


def archive(name="mail/SKILL.md", content="---\nname: mail\ndescription: d\n---\nbody"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr(name, content)
    return out.getvalue()


def told(answer):
    return answer.status_code, answer.json().get("error")


def test_a_skill_is_made_read_changed_switched_and_removed(serve):
    async def test(http, _):
        made = await http.post("/skills", json={"id": "mail", **BODY, "files": [{"path": "a.md", "content": "ü"}]})
        assert (made.status_code, made.json()["files"]) == (
            201,
            [{"path": "a.md", "content": "ü", "mimeType": "text/plain"}],
        )
        row = next(row for row in (await http.get("/skills")).json()["skills"] if row["id"] == "mail")
        assert (row["status"], row["enabled"], row["mcpDependencies"]) == ("ready", True, [])
        changed = await http.patch("/skills/mail", json={**BODY, "body": "other"})
        assert (changed.status_code, changed.json()["body"], changed.json()["files"]) == (200, "other", [])
        switched = await http.put("/skills/mail/enabled", json={"enabled": False})
        assert (switched.status_code, switched.json()["status"]) == (200, "disabled")
        assert told(await http.put("/skills/mail/enabled", json={"enabled": "no"})) == (400, "invalid")
        assert (await http.delete("/skills/mail")).json() == {"deleted": True}
        assert told(await http.get("/skills/mail")) == (404, "no_such_skill")

    asking(serve, test)


def test_a_folder_that_is_dropped_in_appears_without_a_restart(serve):
    async def test(http, opened):
        before = {row["id"] for row in (await http.get("/skills")).json()["skills"]}
        changed = asyncio.Event()
        opened.skill_parts.live.on_roster_change(changed.set)
        folder = opened.ground.data_root / "skills" / "fresh"
        folder.mkdir()
        (folder / "SKILL.md").write_text("---\ndescription: d\n---\n")
        async with asyncio.timeout(10):
            while "fresh" not in {row["id"] for row in (await http.get("/skills")).json()["skills"]}:
                await changed.wait()
                changed.clear()
        assert {row["id"] for row in (await http.get("/skills")).json()["skills"]} == {*before, "fresh"}

    asking(serve, test)


def test_refusals_have_their_statuses_and_codes(serve):
    async def test(http, _):
        await http.post("/skills", json={"id": "mail", **BODY})
        assert told(await http.post("/skills", json={"id": "mail", **BODY})) == (409, "already_exists")
        assert told(await http.post("/skills", json={"id": "a/b", **BODY})) == (400, "invalid_id")
        assert told(await http.post("/skills", json={"id": "pizza-bot", **BODY})) == (409, "reserved_id")
        wrong = await http.post("/skills", json={"id": "x", **BODY, "name": ""})
        assert (told(wrong), wrong.json()["fields"]) == ((400, "invalid"), {"name": "must not be empty"})
        assert told(await http.patch("/skills/none", json=BODY)) == (409, "not_editable")
        assert told(await http.delete("/skills/none")) == (404, "no_such_skill")
        assert told(await http.put("/skills/none/enabled", json={"enabled": True})) == (404, "no_such_skill")
        assert told(await http.get("/skills/none/export")) == (404, "no_such_skill")
        assert told(await http.post("/skills/generate", json={"prompt": " "})) == (400, "invalid")
        assert told(await http.post("/skills/generate", json={})) == (400, "invalid")
        assert told(await http.post("/skills/generate", json={"prompt": "x"})) == (503, "generate_failed")
        for odd in (b"[]", b"1", b"{", b'"x"'):
            answer = await http.post("/skills", content=odd, headers={"content-type": "application/json"})
            assert answer.status_code == 400

    asking(serve, test)


def test_enabling_names_the_servers_that_are_missing(serve):
    async def test(http, _):
        await http.post("/skills", json={"id": "mail", **BODY, "declaredTools": ["mcp:gone:x"]})
        await http.put("/skills/mail/enabled", json={"enabled": False})
        answer = await http.put("/skills/mail/enabled", json={"enabled": True})
        assert (told(answer), answer.json()["blockers"]) == (
            (409, "dependency_disabled"),
            [{"id": "gone", "reason": "missing"}],
        )

    asking(serve, test)


def test_an_archive_goes_out_and_comes_back_in(serve):
    async def test(http, _):
        made = await http.post("/skills/import", files={"file": ("mail.zip", archive(), "application/zip")})
        assert (made.status_code, made.json()["id"]) == (201, "mail")
        again = await http.post("/skills/import", files={"file": ("mail.zip", archive())})
        assert told(again) == (409, "already_exists")
        exported = await http.get("/skills/mail/export")
        assert exported.headers["content-type"] == "application/zip"
        assert exported.headers["content-disposition"] == 'attachment; filename="mail.zip"'
        await http.delete("/skills/mail")
        assert (await http.post("/skills/import", files={"file": ("x", exported.content)})).status_code == 201

    asking(serve, test)


def test_what_is_no_form_or_no_archive_has_a_code(serve):
    async def test(http, _):
        async def sent(**what):
            return told(await http.post("/skills/import", **what))

        assert await sent(content=archive()) == (400, "invalid_multipart")
        assert await sent(json={}) == (400, "invalid_multipart")
        form = {"content-type": "multipart/form-data; boundary=x"}
        assert await sent(content=b"garbage", headers=form) == (400, "invalid_multipart")
        assert await sent(content=b"", headers=form) == (400, "invalid_multipart")
        assert await sent(content=b"x", headers={"content-type": "multipart/form-data"}) == (400, "invalid_multipart")
        assert await sent(files={"other": (None, b"x")}) == (400, "missing_file")
        assert await sent(files={"other": ("x", b"x")}) == (400, "invalid_multipart")
        assert await sent(files={"file": ("x", b"")}) == (400, "empty_archive")
        assert await sent(files={"file": ("x", b"no zip")}) == (400, "invalid_archive")
        assert await sent(files={"file": ("x", archive("a/SKILL.md"))}) == (400, "name_mismatch")
        assert await sent(files={"file": ("x", b"\0" * (20 * 1024 * 1024 + 1))}) == (413, "archive_too_large")
        assert await sent(files={"file": ("x", b"\0" * (21 * 1024 * 1024))}) == (413, "request_too_large")
        many = (
            b"".join(b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n' for _ in range(50)) + b"--x--\r\n"
        )
        assert await sent(content=many, headers=form) == (400, "invalid_multipart")

    asking(serve, test)


def test_bundles_may_be_larger_than_other_bodies_but_not_without_the_token(serve):
    content = "x" * (3 * 1024 * 1024)
    body = {"id": "large", **BODY, "files": [{"path": "big.txt", "content": content}]}

    async def test(http, _):
        assert told(await http.post("/skills", json=body)) == (413, "request_too_large")
        right = {"authorization": f"Bearer {TOKEN}"}
        made = await http.post("/skills", json=body, headers=right)
        assert made.status_code == 201
        assert made.json()["files"][0]["content"] == content
        assert (await http.patch("/skills/large", json=body, headers=right)).status_code == 200
        assert told(await http.put("/skills/large/enabled", json=body, headers=right)) == (413, "request_too_large")
        large = json.dumps({"prompt": content}).encode()
        assert told(await http.post("/skills/generate", content=large, headers=right)) == (413, "request_too_large")

    asking(serve, test, token=TOKEN)


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [
        ("POST", "/skills", SKILL_BODY_BYTES),
        ("PATCH", "/skills/a", SKILL_BODY_BYTES),
        ("PATCH", "/skills/a/b", 1000),
        ("POST", "/skills/generate", 1000),
        ("PUT", "/skills/a", 1000),
        ("POST", "/threads", 1000),
    ],
)
def test_each_route_has_its_limit(method, path, limit):
    assert BodyLimits(json_bytes=1000, admits=lambda _: True).of({"method": method, "path": path}) == limit
    assert BodyLimits(json_bytes=1000, admits=lambda _: False).of({"method": method, "path": path}) == 1000
    assert LARGE_BODIES


def test_tools_are_the_built_in_ones_where_no_server_is_connected(serve):
    async def test(http, _):
        answer = (await http.get("/tools")).json()
        assert answer["builtins"] == [
            {"ref": "builtin:eval", "name": "eval"},
            {"ref": "builtin:ask_user", "name": "ask_user"},
        ]

    asking(serve, test)


def test_a_misspelt_restriction_is_refused_and_not_passed_over(serve):
    async def test(http, _):
        for key in ("interrupton", "interrupt_on", "declared_tools"):
            answer = await http.post("/skills", json={"id": "mail", **BODY, key: {}})
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid"), key

    asking(serve, test)
