"""The transport keeps the contract of transports, over its socket and over TCP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pizzabot_lines.client import LinesClient, Refused
from serving import TOKEN, served

from pizzabot.testing import ScriptedHost, TransportContract
from pizzabot.testing.transport_contract import TransportClient
from pizzabot_hookspecs import PizzabotError


class Adapter:
    """The client that ships with this package, as the suite wants to talk to it."""

    def __init__(self, client: LinesClient) -> None:
        self._client = client

    async def create_thread(
        self, thread_id: str | None = None, /, *, metadata: Mapping[str, Any] | None = None, if_exists: str = "raise"
    ) -> Mapping[str, Any]:
        return await self._answer("create_thread", thread_id=thread_id, metadata=metadata, if_exists=if_exists)

    async def command(self, thread_id: str, body: object, /) -> Mapping[str, Any]:
        envelope: Mapping[str, Any] = (await self._answer("command", thread_id=thread_id, command=body))["envelope"]
        return envelope

    async def events(
        self,
        thread_id: str,
        /,
        *,
        channels: Sequence[str],
        namespaces: Sequence[Sequence[str]] = (),
        depth: int | None = None,
        since: int | None = None,
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        wanted = {"channels": list(channels), "namespaces": list(namespaces), "depth": depth, "since": since}
        async with aclosing(self._client.events(thread_id, **wanted)) as frames:
            try:
                async for frame in frames:
                    yield frame
            except Refused as refused:
                raise PizzabotError(refused.code, str(refused)) from refused

    async def state(self, thread_id: str, /) -> Mapping[str, Any]:
        return await self._answer("state", thread_id=thread_id)

    async def history(
        self, thread_id: str, /, *, limit: int = 10, before: str | None = None, namespace: Sequence[str] = ()
    ) -> Sequence[Mapping[str, Any]]:
        wanted = {"limit": limit, "before": before, "namespace": list(namespace)}
        states: Sequence[Mapping[str, Any]] = (await self._answer("history", thread_id=thread_id, **wanted))["states"]
        return states

    async def activity(self) -> AsyncGenerator[Mapping[str, Any], None]:
        async with aclosing(self._client.activity()) as told:
            async for change in told:
                threads = [{**row, "threadId": row["thread_id"]} for row in change["threads"]]
                inbox = [{**row, "interruptId": row["interrupt_id"]} for row in change.get("inbox", ())]
                yield {**change, "threads": threads, **({"inbox": inbox} if "inbox" in change else {})}

    async def stop(self, thread_id: str, run_id: str, /) -> str:
        return str((await self._answer("stop", thread_id=thread_id, run_id=run_id))["outcome"])

    async def _answer(self, op: str, **params: Any) -> Mapping[str, Any]:
        try:
            result: Mapping[str, Any] = await self._client.call(op, **params)
            return result
        except Refused as refused:
            raise PizzabotError(refused.code, str(refused)) from refused


class TestSocket(TransportContract):
    history = True
    activity = True
    section: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def client(self, host: ScriptedHost) -> AsyncIterator[TransportClient]:
        async with served(host, self.folder, self.section) as address:
            client = await LinesClient.connect(address, token=TOKEN)
            try:
                yield Adapter(client)
            finally:
                await client.close()


class TestTcp(TestSocket):
    section: ClassVar[Mapping[str, Any]] = {"port": 0, "token": TOKEN}
