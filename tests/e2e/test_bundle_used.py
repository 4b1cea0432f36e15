"""A bundle from a ZIP, used: its specialist calls its server, a person decides, and it goes away with its process."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from household import HERE, READY_SECONDS
from scripting import delegate, steps, use
from servers import Server, running_server
from sessions import APPROVE, Session, sdk

from pizzabot.testing.bundle_files import bundle_files, zip_of

COOK = """---
description: Takes orders.
tools: ["mcp:galley:price", "mcp:galley:order"]
interruptOn:
  mcp:galley:order: true
---
You are the cook.
"""


def galley(folder: Path) -> bytes:
    """The ZIP of a bundle with its server inside, as somebody would pass it on."""
    entry = {"command": sys.executable, "args": ["${CLAUDE_PLUGIN_ROOT}/kitchen.py", str(folder / "journal.txt")]}
    files = {
        "skills/cook/SKILL.md": COOK,
        "kitchen.py": (HERE / "kitchen.py").read_text(),
        ".mcp.json": json.dumps({"mcpServers": {"galley": entry}}),
    }
    return zip_of(bundle_files({"name": "galley", "version": "1.0.0"}, files))


async def imported(client: Any, server: Server, packed: bytes) -> None:
    async with httpx.AsyncClient(base_url=server.http, timeout=30, trust_env=False) as http:
        answer = await http.post("/plugins/import", files={"file": ("galley.zip", packed, "application/zip")})
        assert (answer.status_code, answer.json()) == (201, {"name": "galley"})
    deadline = time.monotonic() + READY_SECONDS
    while (found := await cook(client))["status"] != "ready":
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.05)  # nothing that a client could wait for tells that a skill became ready


async def cook(client: Any) -> dict[str, Any]:
    skills = (await client.http.get("/skills"))["skills"]
    return next((skill for skill in skills if skill["id"] == "cook"), {"status": "none"})


def children_with(text: str) -> list[str]:
    """Command lines of living processes in which `text` stands; of this system's `/proc`, else none."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


def test_a_bundle_from_a_zip_is_delegated_to_asks_before_its_server_acts_and_goes_whole(tmp_path: Path) -> None:
    order = use("galley__order", dish="soup", table=4)
    journal = tmp_path / "journal.txt"

    async def scene(server: Server) -> None:
        async with asyncio.timeout(60), sdk(server.http) as client:
            await imported(client, server, galley(tmp_path))
            session = Session(client, "t")
            words = steps(delegate("cook", use("galley__price", dish="soup"), order, "Ordered."), "Thank the cook.")
            asked = await session.turn(words)
            assert asked.event == "interrupted"
            (question,) = await session.waiting()
            assert (question["kind"], journal.read_text()) == ("approval", "price soup\n")
            assert (await session.answer(question["interruptId"], APPROVE)).text == "Thank the cook."
            assert journal.read_text() == "price soup\norder soup for 4\n"

            refused = await session.turn(steps(delegate("cook", order, "Not ordered."), "A pity."))
            assert refused.event == "interrupted"
            (question,) = await session.waiting()
            answer = {"decisions": [{"type": "reject", "message": "Too salty."}]}
            assert (await session.answer(question["interruptId"], answer)).text == "A pity."
            assert journal.read_text() == "price soup\norder soup for 4\n"

            server.kill()
            server.start()
        async with asyncio.timeout(60), sdk(server.http) as client:
            deadline = time.monotonic() + READY_SECONDS
            while (await cook(client))["status"] != "ready":
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            assert children_with(str(journal)) or sys.platform != "linux"
            deadline = time.monotonic() + READY_SECONDS
            assert await client.http.delete("/plugins/galley") is None
            assert (await cook(client))["status"] == "none"
            while children_with(str(journal)):  # the guard ends right after what it guards
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            gone = await Session(client, "u").turn(steps(delegate("cook", order, "Ordered."), "There is no cook."))
            assert (gone.event, gone.text) == ("completed", "There is no cook.")
            assert journal.read_text() == "price soup\norder soup for 4\n"

    with running_server(tmp_path / "server") as server:
        asyncio.run(scene(server))
