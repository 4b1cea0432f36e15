"""An MCP server over stdio that keeps a journal: what it did stands in a file, on the disk before it answers.

`kitchen.py JOURNAL`. Where `GATES` names a port, `bake` says there where it is and waits until it may go on (`gates`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("kitchen", log_level="CRITICAL")


def write(line: str) -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as journal:
        journal.write(line + "\n")
        journal.flush()
        os.fsync(journal.fileno())


async def gate(name: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["GATES"]))
    try:
        writer.write(name.encode() + b"\n")
        if not await reader.readline():
            raise ConnectionError("the gates are closed: this server outlived who started it")
    finally:
        writer.close()


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def price(dish: str) -> str:
    """What a dish costs."""
    write(f"price {dish}")
    return f"{dish} costs {len(dish)} crowns"


@server.tool()
def order(dish: str, table: int) -> str:
    """Order a dish."""
    write(f"order {dish} for {table}")
    return f"{dish} is ordered for table {table}"


@server.tool()
async def bake(dish: str) -> str:
    """Bake a dish, which cannot be undone."""
    write(f"bake {dish}")
    await gate(f"baking {dish}")
    write(f"baked {dish}")
    return f"{dish} is baked"


if __name__ == "__main__":
    server.run()
