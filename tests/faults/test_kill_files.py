"""Killed between a file's bytes and its row: afterwards it is there whole or not at all, and saving it again works."""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from test_kill import restarted
from watching import play

CONTENT = "x" * 300_000
DIGEST = hashlib.sha256(CONTENT.encode()).hexdigest()


@asynccontextmanager
async def asking(server):
    async with httpx.AsyncClient(base_url=server.http, timeout=20, trust_env=False) as http:
        yield http


async def killed_while(server, gates, step, request):
    """`request(http)` is under way when the server is killed at `step`."""
    gates.hold(step)
    async with asking(server) as http:
        sent = asyncio.create_task(request(http))
        await asyncio.to_thread(gates.reached, step)
        await asyncio.to_thread(restarted, server, gates)
        with suppress(httpx.HTTPError):
            await sent


def whole_blobs(server):
    """The digests that are there; each blob is what its name says."""
    found = [path for path in (server.data_root / "blobs").rglob("*") if re.fullmatch("[0-9a-f]{64}", path.name)]
    for path in found:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    return {path.name for path in found}


@pytest.mark.parametrize(("step", "stored"), [("before the row", False), ("after the row", True)])
def test_killed_between_a_file_s_content_and_its_row_the_file_is_whole_or_not_there(serve, gates, step, stored):
    server = serve(storage="holding")
    saving = {"content": CONTENT, "baseSha256": None}

    async def scene():
        async with asking(server) as http:
            assert (await http.post("/threads", json={"thread_id": "t"})).status_code == 200
        await killed_while(server, gates, step, lambda http: http.put("/threads/t/artifacts/a.txt", json=saving))
        assert whole_blobs(server) <= {DIGEST}
        async with asking(server) as http:
            listed = (await http.get("/threads/t/artifacts")).json()["artifacts"]
            assert [row["path"] for row in listed] == (["/a.txt"] if stored else [])
            again = await http.put("/threads/t/artifacts/a.txt", json=saving)
            assert (again.status_code, again.json()["version"], again.json()["sha256"]) == (200, 1, DIGEST)
            assert (await http.get("/threads/t/artifacts/a.txt")).text == CONTENT
            assert whole_blobs(server) == {DIGEST}

    play(scene())


@pytest.mark.parametrize(("step", "stored"), [("before the attachment", False), ("after the attachment", True)])
def test_killed_between_an_attachment_s_bytes_and_its_row_it_is_whole_or_not_there(serve, gates, step, stored):
    server = serve(storage="holding")

    async def scene():
        files = {"file": ("a.txt", CONTENT.encode(), "text/plain")}
        await killed_while(server, gates, step, lambda http: http.post("/attachments", files=files))
        async with asking(server) as http:
            for path in (server.data_root / "attachments").glob("0*"):
                got = await http.get(f"/attachments/{path.name}")
                assert (got.status_code, got.text == CONTENT) == ((200, True) if stored else (404, False))
            assert (await http.post("/attachments", files=files)).status_code == 201

    play(scene())
