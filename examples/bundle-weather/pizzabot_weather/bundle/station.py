"""An MCP server over stdio, written with the `mcp` package: the readings of a weather station, in one CSV file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP  # noqa: TID253 - this is no module of a host, but a program
from mcp.types import ToolAnnotations  # noqa: TID253

COLUMNS = ["day", "place", "celsius"]
MAX_READINGS = 1_000

server = FastMCP("weather", log_level="ERROR")
file = Path(sys.argv[1])


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def readings(place: str = "") -> list[dict[str, str]]:
    """The readings of a place, or of all places, oldest first."""
    with file.open(newline="", encoding="utf-8") as opened:
        return [row for row in csv.DictReader(opened) if place in ("", row["place"])][-MAX_READINGS:]


@server.tool()
def add_reading(day: str, place: str, celsius: float) -> str:
    """Keep a new reading. `day` is written YYYY-MM-DD."""
    with file.open("a", newline="", encoding="utf-8") as opened:
        csv.DictWriter(opened, COLUMNS).writerow({"day": day, "place": place, "celsius": celsius})
    return f"kept: {day} {place} {celsius}"


if __name__ == "__main__":
    server.run()
