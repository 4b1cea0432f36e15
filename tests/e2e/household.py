"""A data root as a person has it: three specialists of their own, an MCP server, granted folders; a server on it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from gates import Gates
from servers import Server, running_server

HERE = Path(__file__).parent
RECIPE = "Zwiebelküche 100%.txt"
RECIPE_TOLD = "/local/recipes/Zwiebelk%C3%BCche 100%25.txt"
"""As the assistant is told it."""
MEMO = "日本語 [メモ].md"

CHEF = """---
name: Chef
description: Knows prices, takes orders and bakes.
tools:
  - mcp:kitchen:price
  - mcp:kitchen:order
  - mcp:kitchen:bake
interruptOn:
  mcp:kitchen:order: true
---
You are the chef. The house rules are in references/rules.md.
"""
CLERK = """---
name: Clerk
description: Counts and sorts in bulk.
tools: [builtin:eval]
---
You are the clerk.
"""
WAITER = """---
name: Waiter
description: Asks the guests.
tools: [builtin:ask_user]
---
You are the waiter.
"""


SPECIALISTS = {"chef": CHEF, "clerk": CLERK, "waiter": WAITER}
READY_SECONDS = 30.0


@dataclass(frozen=True)
class Household:
    server: Server
    gates: Gates
    folder: Path

    @property
    def recipes(self) -> Path:
        return self.folder / "recipes"

    @property
    def drafts(self) -> Path:
        return self.folder / "drafts"

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    @property
    def journal(self) -> list[str]:
        """What the MCP server did, in order."""
        path = self.folder / "journal.txt"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def specialists_ready(self) -> None:
        """Wait until all three can be called: the MCP server is started behind the listener."""
        deadline = time.monotonic() + READY_SECONDS
        rows: object = None
        with httpx.Client(base_url=self.server.http, timeout=20, trust_env=False) as http:
            while time.monotonic() < deadline:
                try:
                    rows = {row["id"]: row["status"] for row in http.get("/skills").json()["skills"]}
                except httpx.TransportError as error:
                    raise AssertionError(f"the server is gone: {self.server.errors()}") from error
                if all(rows[name] == "ready" for name in SPECIALISTS):
                    return
                time.sleep(0.05)  # nothing that a client could wait for tells that a skill became ready
        raise AssertionError(f"the specialists are not ready: {rows}\n{self.server.errors()}")

    def killed_and_restarted(self) -> None:
        self.server.kill()
        self.gates.forget()
        self.server.start()
        self.specialists_ready()


@contextmanager
def household(folder: Path) -> Iterator[Household]:
    data = folder / "server" / "data"
    data.mkdir(parents=True, mode=0o700)
    for name, text in SPECIALISTS.items():
        (data / "skills" / name).mkdir(parents=True)
        (data / "skills" / name / "SKILL.md").write_text(text)
    (data / "skills" / "chef" / "references").mkdir()
    (data / "skills" / "chef" / "references" / "rules.md").write_text("Ask before you order.\n")
    for name in ("recipes", "drafts", "inbox"):
        (folder / name).mkdir()
    (folder / "recipes" / RECIPE).write_text("".join(f"onion {number}\n" for number in range(1, 251)))
    (folder / "recipes" / MEMO).write_text("塩を忘れない\n")
    with Gates() as gates:
        server = {
            "command": sys.executable,
            "args": [str(HERE / "kitchen.py"), str(folder / "journal.txt")],
            "env": {"GATES": str(gates.port)},
        }
        (data / ".mcp.json").write_text(json.dumps({"mcpServers": {"kitchen": server}}))
        config = (
            "[folders]\nconfigure = true\n"
            f'grants = [{{ path = "{folder}/recipes" }}, {{ path = "{folder}/drafts", read_only = false }}]\n'
        )
        with running_server(folder / "server", config=config) as started:
            house = Household(started, gates, folder)
            house.specialists_ready()
            yield house
