"""Bundles over HTTP, with a real host behind a real server (spec/01 §9)."""

import asyncio
import json

import httpx
import pytest

from pizzabot.testing import host
from pizzabot.testing.bundle_files import bundle_files, zip_of
from pizzabot_builtin_plugins.http_server.routes_bundles import MAX_BUNDLE_ARCHIVE_BODY_BYTES

FILES = {"skills/review/SKILL.md": "---\ndescription: d\n---\nb\n"}
MAKE = """
import json, os, pathlib
out = pathlib.Path(os.environ["PIZZABOT_MATERIALIZER_OUTPUT_DIR"])
(out / ".claude-plugin").mkdir()
(out / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "gen"}))
"""


def asking(serve, test, **settings):
    async def main():
        async with (
            host() as opened,
            serve(opened, **settings) as served,
            httpx.AsyncClient(base_url=served.address, timeout=30) as http,
        ):
            await test(http)

    asyncio.run(main())


def zipped(name="tools", files=FILES, **manifest):
    return {"file": (f"{name}.zip", zip_of(bundle_files({"name": name, **manifest}, files)), "application/zip")}


def told(answer):
    return answer.status_code, answer.json().get("error")


async def rows(http):
    return {row["name"]: row for row in (await http.get("/plugins")).json()["bundles"]}


def test_a_bundle_is_installed_listed_beside_python_plugins_and_deleted(serve):
    async def test(http):
        made = await http.post("/plugins/import", files=zipped())
        assert (made.status_code, made.json()) == (201, {"name": "tools"})
        answer = (await http.get("/plugins")).json()
        assert "bundles" in {plugin["name"] for plugin in answer["plugins"]}
        [row] = answer["bundles"]
        assert (row["name"], row["status"], row["removable"]) == ("tools", "loaded", True)
        skill = next(row for row in (await http.get("/skills")).json()["skills"] if row["id"] == "review")
        assert skill["pluginName"] == "tools"
        assert told(await http.post("/plugins/import", files=zipped())) == (409, "already_exists")
        deleted = await http.delete("/plugins/tools")
        assert (deleted.status_code, deleted.json()) == (200, {"deleted": True})
        assert told(await http.delete("/plugins/tools")) == (404, "no_such_plugin")
        assert told(await http.delete("/plugins/..%2Ftools")) == (400, "invalid_path")
        assert told(await http.delete("/plugins/Tools")) == (400, "invalid_name")
        assert await rows(http) == {}

    asking(serve, test)


def test_a_materializer_is_run_by_hand(serve):
    async def test(http):
        assert (await http.post("/plugins/reload")).json() == {"reloaded": True}
        assert told(await http.post("/plugins/gen/refresh")) == (404, "no_such_materialization")
        manifest = {"extensions": {"dev.pizzabot.materializer": {"entrypoint": "make.py", "sourceRoots": ["/abs"]}}}
        assert (
            await http.post("/plugins/import", files=zipped("gen", {"make.py": MAKE}, **manifest))
        ).status_code == 201
        refreshed = await http.post("/plugins/gen/refresh")
        assert refreshed.status_code == 200
        assert refreshed.json()["name"] == "gen"
        state = refreshed.json()["materialization"]
        assert (state["state"], state["sourceRoots"]) == ("synced", ["/abs"])
        assert (await rows(http))["gen"]["materialization"] == state

    asking(serve, test)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"content": b"x"}, (400, "invalid_multipart")),
        ({"files": {"other": (None, b"x")}}, (400, "missing_file")),
        ({"files": {"file": ("a", b"x")}}, (400, "invalid_archive")),
        ({"files": {"file": ("a", b"")}}, (400, "empty_archive")),
        ({"files": zipped("A")}, (400, "invalid_manifest")),
        ({"files": zipped("a", skills="../x")}, (400, "invalid_manifest")),
        ({"files": {"file": ("a", zip_of({"a": b""}))}}, (400, "invalid_bundle")),
        ({"files": zipped("a", engines={"pizzaBot": ">99"})}, (409, "activation_failed")),
        ({"files": {"file": ("a", bytes(50 * 1024 * 1024 + 1))}}, (413, "archive_too_large")),
        ({"files": {"file": ("a", bytes(MAX_BUNDLE_ARCHIVE_BODY_BYTES))}}, (413, "request_too_large")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_what_is_no_bundle_gets_its_code_and_installs_nothing(serve, what, expected):
    async def test(http):
        assert told(await http.post("/plugins/import", **what)) == expected
        assert await rows(http) == {}

    asking(serve, test)


def test_a_failed_bundle_is_listed_with_file_line_and_reason(serve, tmp_path):
    async def main():
        folder = tmp_path / "plugins" / "broken" / ".claude-plugin"
        folder.mkdir(parents=True)
        (folder / "plugin.json").write_text(json.dumps({"name": "broken", "skills": "gone"}, indent=1))
        async with (
            host(data_root=tmp_path) as opened,
            serve(opened) as served,
            httpx.AsyncClient(base_url=served.address, timeout=30) as http,
        ):
            await http.post("/plugins/reload")
            row = (await rows(http))["broken"]
            assert row["status"] == "failed"
            assert row["detail"] == ".claude-plugin/plugin.json line 3: there is no 'gone' in the bundle"

    asyncio.run(main())
