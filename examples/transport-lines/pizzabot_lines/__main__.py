"""`python -m pizzabot_lines ADDRESS TEXT [THREAD]`: say something on a thread and print the answer as it comes."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid

from pizzabot_lines.client import LinesClient

TERMINAL = ("completed", "failed", "interrupted")


async def say(address: str, text: str, thread_id: str) -> int:
    """The exit code: 0 when the answer is complete. The token of a TCP server is taken from `LINES_TOKEN`."""
    client = await LinesClient.connect(address, token=os.environ.get("LINES_TOKEN"))
    try:
        start = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"content": text}]}}}
        reply = await client.call("command", thread_id=thread_id, command=start)
        if reply["outcome"] != "done":
            sys.stderr.write(f"{reply['envelope']['message']}\n")
            return 1
        async for frame in client.events(thread_id, channels=["messages", "lifecycle"]):
            data = frame["params"]["data"]
            if data["event"] == "content-block-delta":
                sys.stdout.write(data["delta"].get("text", ""))
                sys.stdout.flush()
            if frame["method"] == "lifecycle" and not frame["params"]["namespace"] and data["event"] in TERMINAL:
                sys.stdout.write("\n")
                return 0 if data["event"] == "completed" else 1
        return 1
    finally:
        await client.close()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python -m pizzabot_lines ADDRESS TEXT [THREAD]")
    sys.exit(asyncio.run(say(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else str(uuid.uuid4()))))
