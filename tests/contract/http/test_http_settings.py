"""Settings, memories and granted folders over a real server with a real host behind it (spec/01 §11)."""

import asyncio
import json
import os
from pathlib import Path

import httpx

from pizzabot.testing import host


def asking(serve, tmp_path, test, **folders):
    """Run `test(http, place)` against a real server; `place` holds the folders `Docs` and `Notes`."""
    place = Path(os.path.realpath(tmp_path)) / "place"
    for name in ("Docs/inner", "Notes"):
        (place / name).mkdir(parents=True)
    (tmp_path / "data").mkdir()

    async def main():
        settings = {"storage": {"use": "memory"}, "folders": folders}
        async with (
            host(settings=settings, data_root=tmp_path / "data") as running,
            serve(running) as served,
            httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        ):
            await test(http, place)

    asyncio.run(main())


def said(answer):
    """Status and error code, after a look at the shape that every error has."""
    body = answer.json()
    assert set(body) <= {"error", "detail", "fields"}
    assert body["detail"]
    assert "\n" not in body["detail"]
    return answer.status_code, body["error"]


def test_settings_are_read_and_changed_in_part(serve, tmp_path):
    async def test(http, _):
        defaults = (await http.get("/settings")).json()
        assert defaults == {
            "theme": "dark", "customPromptAddendum": "", "enableMemories": False, "enableAutomations": False,
            "maxToolCalls": 100, "maxSubagentToolCalls": 150,
        }  # fmt: skip
        answer = await http.put("/settings", json={"theme": "light", "maxToolCalls": 0, "nonsense": 1})
        assert (answer.status_code, answer.json()) == (200, {**defaults, "theme": "light"})
        assert (await http.put("/settings")).json() == answer.json()
        assert (await http.get("/settings")).json() == answer.json()
        assert said(await http.put("/settings", json=["theme"])) == (400, "invalid_request")
        assert said(await http.put("/settings", content=b"{")) == (400, "invalid_json")

    asking(serve, tmp_path, test)


def test_memories_are_documents_while_memory_is_on(serve, tmp_path):
    async def test(http, _):
        assert (await http.get("/memories")).json() == {"memories": []}
        for call in (
            http.get("/memories/a"),
            http.post("/memories", json={"id": "a", "content": "x"}),
            http.put("/memories/a", json={"content": "x"}),
            http.delete("/memories/a"),
        ):
            assert said(await call) == (409, "memories_disabled")
        await http.put("/settings", json={"enableMemories": True})
        made = await http.post("/memories", json={"id": "a", "content": "# größer"})
        assert (made.status_code, made.json()["content"]) == (201, "# größer")
        assert said(await http.post("/memories", json={"id": "a", "content": "x"})) == (409, "already_exists")
        assert (await http.get("/memories/a")).json() == made.json()
        put = await http.put("/memories/b", json={"content": "second"})
        assert (put.status_code, put.json()["id"]) == (200, "b")
        listed = (await http.get("/memories")).json()["memories"]
        assert {row["id"]: row["preview"] for row in listed} == {"a": "# größer", "b": "second"}
        assert {tuple(sorted(row)) for row in listed} == {("id", "preview", "size", "updatedAt")}
        for _ in range(2):
            assert (await http.delete("/memories/b")).json() == {"deleted": True}
        assert said(await http.get("/memories/b")) == (404, "no_such_memory")
        for wrong in (".hidden", "a%20b", "%C3%A9"):
            assert said(await http.get(f"/memories/{wrong}")) == (400, "invalid_id")
        assert said(await http.post("/memories", json={"id": "../a", "content": "x"})) == (400, "invalid_id")
        for body in ({"id": "c"}, {"content": "x"}, {"id": 1, "content": "x"}, {"id": "c", "content": None}):
            assert said(await http.post("/memories", json=body)) == (400, "invalid_request")
        assert said(await http.put("/memories/c", json={})) == (400, "invalid_request")
        lone = json.dumps({"content": "\ud800"})
        assert said(await http.put("/memories/c", content=lone)) == (400, "invalid_content")
        large = {"content": "x" * (256 * 1024 + 1)}
        assert said(await http.put("/memories/c", json=large)) == (413, "memory_too_large")

    asking(serve, tmp_path, test)


def test_folders_are_granted_listed_and_taken_back(serve, tmp_path):
    async def test(http, place):
        assert (await http.get("/local-folders")).json() == {
            "folders": [], "configurable": True, "browseAvailable": True
        }  # fmt: skip
        made = await http.post("/local-folders", json={"path": str(place / "Docs"), "label": "ignored"})
        record = made.json()
        assert (made.status_code, record) == (
            201,
            {
                "id": "docs", "label": "Docs", "path": str(place / "Docs"), "virtualPath": "/local/docs",
                "readOnly": True, "createdAt": record["createdAt"], "managedByFile": False,
            },
        )  # fmt: skip
        assert (await http.get("/local-folders")).json()["folders"] == [record]
        post = {"path": str(place / "Docs")}
        assert said(await http.post("/local-folders", json=post)) == (409, "already_exists")
        post = {"path": str(place / "Docs/inner")}
        assert said(await http.post("/local-folders", json=post)) == (409, "overlapping_grant")
        post = {"path": str(place / "Docs/inner"), "readOnly": False}
        assert (await http.post("/local-folders", json=post)).json()["readOnly"] is False
        post = {"path": str(place / "Notes"), "readOnly": "yes"}
        assert said(await http.post("/local-folders", json=post)) == (400, "invalid_access")
        for path in (None, 5, "", "Docs", str(place / "none"), "/" + "x" * 5000):
            assert said(await http.post("/local-folders", json={"path": path})) == (400, "invalid_path")
        data = {"path": str(tmp_path / "data")}
        assert said(await http.post("/local-folders", json=data)) == (409, "data_root_access_requires_confirmation")
        wrong = {**data, "acknowledgeDataRootAccess": "yes"}
        assert said(await http.post("/local-folders", json=wrong)) == (400, "invalid_request")
        granted = await http.post("/local-folders", json={**data, "acknowledgeDataRootAccess": True})
        assert granted.status_code == 201
        assert (await http.delete("/local-folders/docs")).json() == {"deleted": True}
        assert (await http.delete("/local-folders/docs")).json() == {"deleted": False}
        assert said(await http.delete("/local-folders/a%20b")) == (400, "invalid_id")

    asking(serve, tmp_path, test, configure=True, browse_roots=[str(tmp_path)])


def test_a_folder_to_grant_is_looked_for_beneath_the_roots(serve, tmp_path):
    root = str(Path(os.path.realpath(tmp_path)) / "place")

    async def test(http, place):
        (place / "file").touch()
        (place / "link").symlink_to("/etc")
        top = (await http.get("/local-folders/browse")).json()
        assert top == {"currentPath": None, "parentPath": None, "directories": [{"name": "place", "path": root}]}
        inside = (await http.get("/local-folders/browse", params={"path": root})).json()
        assert [row["name"] for row in inside["directories"]] == ["Docs", "Notes"]
        for path in ("/etc", str(place / "link"), f"{root}/.."):
            answer = await http.get("/local-folders/browse", params={"path": path})
            assert said(answer) == (403, "path_not_browsable")
        for path in ("", "relative", f"{root}/none", f"{root}/file"):
            answer = await http.get("/local-folders/browse", params={"path": path})
            assert said(answer) == (400, "invalid_path")

    asking(serve, tmp_path, test, configure=True, browse_roots=[root])


def test_without_leave_of_the_operator_folders_are_only_listed(serve, tmp_path):
    async def test(http, place):
        listing = (await http.get("/local-folders")).json()
        assert (listing["configurable"], listing["browseAvailable"]) == (False, False)
        post = {"path": str(place / "Docs")}
        assert said(await http.post("/local-folders", json=post)) == (403, "configuration_disabled")
        assert said(await http.delete("/local-folders/docs")) == (403, "configuration_disabled")
        assert said(await http.get("/local-folders/browse")) == (403, "browsing_disabled")

    asking(serve, tmp_path, test)


def test_a_folder_of_the_file_is_listed_and_not_taken_back_over_http(serve, tmp_path):
    async def test(http, _):
        (record,) = (await http.get("/local-folders")).json()["folders"]
        assert (record["managedByFile"], record["createdAt"]) == (True, None)
        assert said(await http.delete(f"/local-folders/{record['id']}")) == (409, "managed_by_file")

    asking(serve, tmp_path, test, configure=True, grants=[{"path": str(tmp_path / "place")}])
