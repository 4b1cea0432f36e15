"""A conversation as the stock Python SDK has it: turns, answers, branches, and what the transcript tells of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langgraph_sdk import get_client

ASSISTANT = "pizza-bot"
APPROVE = {"decisions": [{"type": "approve"}]}


@dataclass(frozen=True)
class Ended:
    """How a run ended: the event, its code, and what the assistant itself said in it."""

    run_id: str
    event: str
    code: str | None
    text: str


class Session:
    """One thread. Turns get the ids `m1`, `m2`, … in the order in which they are begun."""

    def __init__(self, client: Any, thread_id: str, scripts: dict[str, Any] | None = None) -> None:
        self._client = client
        self.thread_id = thread_id
        self.scripts: dict[str, Any] = scripts if scripts is not None else {}
        """What was said, by the id of the message; a session goes on with those of the one before it."""

    async def start(self, content: Any, **params: Any) -> str:
        """The id of an admitted run. `params` are those that the SDK does not know."""
        name = f"m{len(self.scripts) + 1}"
        self.scripts[name] = content
        message = {"type": "human", "id": name, "content": content}
        if params:
            return await self.command("run.start", {"input": {"messages": [message]}, **params})
        async with self._client.threads.stream(self.thread_id, assistant_id=ASSISTANT) as thread:
            return str((await thread.run.start(input={"messages": [message]}))["run_id"])

    async def turn(self, content: Any, **params: Any) -> Ended:
        return await self.ended(await self.start(content, **params))

    async def answer(self, interrupt_id: str, response: Any) -> Ended:
        return await self.ended(
            await self.command("input.respond", {"interrupt_id": interrupt_id, "response": response})
        )

    async def ended(self, run_id: str) -> Ended:
        """Read the thread's events until the run is over."""
        words: list[str] = []
        async with self._client.threads.stream(self.thread_id, assistant_id=ASSISTANT) as thread:
            async for event in thread.events:
                if event["event_id"].split(":")[1] != run_id:
                    continue
                data, namespace = event["params"]["data"], event["params"]["namespace"]
                if event["method"] == "messages" and not namespace:
                    words.append(data.get("delta", {}).get("text", ""))
                if event["method"] == "lifecycle" and not namespace and data["event"] != "running":
                    return Ended(run_id, data["event"], data.get("code"), "".join(words))
        raise AssertionError(f"the stream ended before run {run_id} did")

    async def called(self, tool: str) -> None:
        """Read the events of the latest run until somebody's model has written a call of `tool`."""
        async with self._client.threads.stream(self.thread_id, assistant_id=ASSISTANT) as thread:
            async for event in thread.events:
                content = event["params"]["data"].get("content") if event["method"] == "messages" else None
                if isinstance(content, dict) and (content.get("type"), content.get("name")) == ("tool_call", tool):
                    return
        raise AssertionError(f"the stream ended before {tool} was called")

    async def waiting(self) -> list[dict[str, Any]]:
        return list((await self.get("interrupts"))["interrupts"])

    async def stop(self, run_id: str) -> None:
        await self._client.runs.cancel(self.thread_id, run_id)

    async def state(self) -> dict[str, Any]:
        return dict(await self._client.threads.get_state(self.thread_id))

    async def get(self, path: str, **params: Any) -> Any:
        return await self._client.http.get(f"/threads/{self.thread_id}/{path}", params=params)

    async def command(self, method: str, params: dict[str, Any]) -> str:
        """The id of the run that it begins."""
        body = {"id": 1, "method": method, "params": params}
        answer = await self._client.http.post(f"/threads/{self.thread_id}/commands", json=body)
        assert answer["type"] == "success", answer
        return str(answer["result"]["run_id"])

    async def transcript(self) -> dict[str, list[Any]]:
        """What each turn of the head's branch shows: its status, then its items in a short form (`_shown`)."""
        turns = await self._turns()
        return {turn["id"]: [turn["status"], *[await self._shown(item) for item in turn["items"]]] for turn in turns}

    async def _turns(self, namespace: Sequence[str] = ()) -> list[dict[str, Any]]:
        page = await self.get("transcript", limit=100, **({"namespace": "|".join(namespace)} if namespace else {}))
        assert not page["hasBefore"]
        assert all(item["namespace"] == list(namespace) for turn in page["turns"] for item in turn["items"])
        return list(page["turns"])

    async def _shown(self, item: dict[str, Any]) -> Any:
        """A text as it is; a tool with its result; a subagent with what stands under its namespace, and its report."""
        match item["kind"]:
            case "text":
                return item["text"]
            case "tool":
                return item["name"], _result(item)
            case "subagent":
                child = item.get("child") or item["namespace"]
                turns = await self._turns(child) if child != item["namespace"] else []
                inside = [await self._shown(found) for turn in turns for found in turn["items"]]
                return item["name"], inside, _result(item)
            case "request":
                return item["requestKind"], item["state"], item.get("answer")
            case "changes":
                return {file["path"]: file["op"] for file in item["files"]}
            case kind:
                return kind, item.get("code")


def _result(item: dict[str, Any]) -> str:
    if item["state"] == "done":
        return str(item["output"])
    return f"{item['state']}: {item.get('error') or item.get('output')}"


def spoken(state: dict[str, Any]) -> list[tuple[str, str]]:
    """The model's memory as (type, text); a message that only calls tools has their names in brackets."""
    told = []
    for message in state["values"]["messages"]:
        content = message["content"]
        if isinstance(content, list):
            content = "".join(block.get("text", "") for block in content if block.get("type") == "text")
        calls = " ".join(call["name"] for call in message.get("tool_calls") or ())
        told.append((message["type"], f"[{calls}]{content}" if calls else content))
    return told


@asynccontextmanager
async def sdk(url: str) -> AsyncIterator[Any]:
    async with get_client(url=url, api_key=None) as client:
        yield client
