"""A server on the standard library that misbehaves in the way it is told: `odd.py WAY [FILE]`. Its pid goes to FILE.

silent         never answers
silent-tools   answers the handshake, never `tools/list`
many           5,000 tools
endless        a next page for ever
nonsense       banners on stdout without end, no MCP
banner         one banner, then a proper server
huge           a line that has no end
wrong          answers `tools/list` with something else
crash-list     ends while its tools are listed, with words on stderr
crash-start    ends at once
tell-environment  ends at once and tells a variable on stderr
future         a kind of content that is not invented yet
stderr         fills its stderr before it answers
meta           answers a call with the `_meta` that came with it
gossip         tells in a broken notification what it was called with
refuse         refuses the handshake
old            speaks a version of the protocol that nobody knows
stubborn       ignores TERM
told           writes to a second FILE when it lists its tools
deaf           answers the handshake and its listing, then reads nothing more
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def main(way: str) -> None:
    begin(way)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            answer(way, asked)


def begin(way: str) -> None:
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(str(os.getpid()))
    if way == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if way == "crash-start":
        print("ModuleNotFoundError: No module named 'left_pad'", file=sys.stderr, flush=True)
        os._exit(1)
    if way == "tell-environment":
        print("no good: " + os.environ["MY_API_KEY"], file=sys.stderr, flush=True)
        os._exit(1)
    if way == "banner":
        print("Welcome to my server!", flush=True)
    while way == "nonsense":
        print("Listening on port 8080", flush=True)
    while way == "huge":
        sys.stdout.write("x" * 65_536)
    if way == "stderr":
        for number in range(20_000):
            print(f"line {number} " + "y" * 80, file=sys.stderr, flush=True)


def answer(way: str, asked: dict[str, Any]) -> None:
    method = asked["method"]
    if way == "silent" or (way == "silent-tools" and method == "tools/list"):
        return
    if way == "crash-list" and method == "tools/list":
        print("segmentation fault, API_TOKEN=hunter2hunter2", file=sys.stderr, flush=True)
        os._exit(139)
    if way == "wrong" and method == "tools/list":
        say(asked, {"tools": "none"})
    elif method == "initialize" and way == "refuse":
        error = {"code": -1, "message": "not today"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
    elif method == "initialize":
        version = "1066-10-14" if way == "old" else asked["params"]["protocolVersion"]
        info = {"name": "odd", "version": "1"}
        say(asked, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        if way == "told":
            Path(sys.argv[3]).write_text(str(time.time()))
        say(asked, listing(way))
        if way == "deaf":
            time.sleep(600)
    elif method == "tools/call":
        content = [{"type": "hologram", "data": {}}] if way == "future" else [{"type": "text", "text": "hello"}]
        if way == "gossip":
            params = {"progressToken": {}, "message": asked["params"]["arguments"]["text"]}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}), flush=True)
        if way == "meta":
            content = [{"type": "text", "text": json.dumps(asked["params"].get("_meta"))}]
        say(asked, {"content": content})
    else:
        say(asked, {})


def listing(way: str) -> dict[str, Any]:
    if way == "many":
        return {"tools": [{**TOOL, "name": f"tool_{number}", "description": "z" * 200} for number in range(5_000)]}
    if way == "endless":
        return {"tools": [], "nextCursor": str(time.monotonic())}
    odd = [{"name": ""}, "no tool", {"name": 5}, {"inputSchema": {}}, TOOL]
    return {"tools": [TOOL, *odd]}


def say(asked: dict[str, Any], result: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
