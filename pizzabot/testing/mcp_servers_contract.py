"""`McpServersContract`: what every source of MCP servers keeps to, as tests to subclass.

    class TestTeam(McpServersContract):
        def source(self) -> Team:
            return Team()

Each test makes its own source, enters it if it is an async context manager, and runs in a loop of its own. Capabilities
that the source does not have are not asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, ClassVar, cast

from pizzabot.host.mcp.definitions import check_id, read_entry
from pizzabot_hookspecs.mcp_servers import KeepsMcpServers, McpServerDefinition, McpServerSource, WatchesMcpServers
from pizzabot_hookspecs.skill_sources import Origin
from pizzabot_hookspecs.wire import JsonValue

ASK_SECONDS = 10.0
CHANGE_SECONDS = 5.0

FIRST: Mapping[str, JsonValue] = {
    "command": "a-program",
    "args": ["--täst", ""],
    "env": {"TOKEN": "${TOKEN}"},
    "enabled": False,
    "of-another-product": {"kept": [1, None]},
}
SECOND: Mapping[str, JsonValue] = {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "${X}"}}


class McpServersContract:
    """Subclass it with a name that starts with `Test`; return a source from `source`.

    `change` makes the source's servers other ones, where that is possible without `KeepsMcpServers`: a source that
    watches has to tell it. `faultless` is whether every entry the source has can be used.
    """

    faultless: ClassVar[bool] = True

    def source(self) -> McpServerSource:
        """A source that works. It may be an async context manager."""
        raise TypeError(f"{type(self).__name__} has to define source(self)")

    async def change(self, source: McpServerSource, turn: int) -> bool:
        """Change what there is, in each turn (0, 1) to something else; False where that cannot be done."""
        if isinstance(source, KeepsMcpServers):
            await source.put("contract-change", SECOND if turn else FIRST)
            return True
        return False

    def test_servers_are_definitions_with_unique_ids(self) -> None:
        async def check(source: McpServerSource) -> None:
            found = await _asked(source)
            assert all(isinstance(server, McpServerDefinition) for server in found), "servers() returns definitions"
            ids = [server.id for server in found]
            assert len(ids) == len(set(ids)), f"an id is there twice: {sorted(ids)}"
            assert all(isinstance(server.origin, Origin) for server in found), "an origin is not an Origin"

        self._run(check)

    def test_every_entry_can_be_used_or_has_a_fault(self) -> None:
        async def check(source: McpServerSource) -> None:
            for server in await _asked(source):
                assert isinstance(server.entry, Mapping), f"{server.id}: its entry is no object"
                assert not (server.fault and self.faultless), f"{server.id}: {server.fault}"
                if not server.fault and self.faultless:
                    check_id(server.id)
                    read_entry(server.entry)

        self._run(check)

    def test_asking_again_and_at_the_same_time_gives_the_same(self) -> None:
        async def check(source: McpServerSource) -> None:
            first, *others = await asyncio.gather(*(_asked(source) for _ in range(5)))
            for answer in others:
                assert _by_id(answer) == _by_id(first), "asked again, it says something else"

        self._run(check)

    def test_a_kept_entry_is_exactly_what_was_put(self) -> None:
        async def check(source: McpServerSource, keeper: KeepsMcpServers) -> None:
            for entry in (FIRST, SECOND, FIRST):
                await keeper.put("contract", entry)
                kept = _by_id(await _asked(source)).get("contract")
                assert kept is not None, "what was put is not among servers()"
                assert kept.entry == entry, f"put {entry}, kept {kept.entry}: references stay unexpanded"
                assert kept.origin is Origin.USER, "what a person keeps is of origin user"

        self._run_keeping(check)

    def test_writing_one_leaves_the_others_as_they_are(self) -> None:
        async def check(source: McpServerSource, keeper: KeepsMcpServers) -> None:
            await keeper.put("contract", FIRST)
            before = {**_by_id(await _asked(source))}
            await keeper.put("contract-other", SECOND)
            await keeper.remove("contract-other")
            assert _by_id(await _asked(source)) == before, "writing one server changed others"

        self._run_keeping(check)

    def test_many_written_at_once_are_all_kept(self) -> None:
        async def check(source: McpServerSource, keeper: KeepsMcpServers) -> None:
            wanted = {f"contract-{number}" for number in range(8)}
            await asyncio.gather(*(keeper.put(server_id, FIRST) for server_id in wanted))
            lost = wanted - _by_id(await _asked(source)).keys()
            assert not lost, f"lost: {sorted(lost)}"

        self._run_keeping(check)

    def test_what_is_removed_is_gone(self) -> None:
        async def check(source: McpServerSource, keeper: KeepsMcpServers) -> None:
            await keeper.put("contract", FIRST)
            assert await keeper.remove("contract") is True, "remove says that there was none"
            assert "contract" not in _by_id(await _asked(source)), "what was removed is still there"
            assert await keeper.remove("contract") is False, "remove says that there was one"

        self._run_keeping(check)

    def test_a_watch_tells_a_change_and_ends_when_it_is_closed(self) -> None:
        async def check(source: McpServerSource) -> None:
            if not isinstance(source, WatchesMcpServers):
                return
            async with aclosing(cast("Any", source.changes())) as changes:
                for turn in range(2):
                    before = _by_id(await _asked(source))
                    watching = asyncio.create_task(_until_other(source, changes, before))
                    if await self.change(source, turn):
                        await asyncio.wait_for(watching, CHANGE_SECONDS)
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)

        self._run(check)

    def _run(self, check: Callable[[McpServerSource], Awaitable[None]]) -> None:
        async def main() -> None:
            async with AsyncExitStack() as stack:
                source = self.source()
                if hasattr(source, "__aenter__"):
                    source = await stack.enter_async_context(cast("Any", source))
                await check(source)

        asyncio.run(main())

    def _run_keeping(self, check: Callable[[McpServerSource, KeepsMcpServers], Awaitable[None]]) -> None:
        async def keeping(source: McpServerSource) -> None:
            if isinstance(source, KeepsMcpServers):
                await check(source, source)

        self._run(keeping)


async def _asked(source: McpServerSource) -> Sequence[McpServerDefinition]:
    return await asyncio.wait_for(source.servers(), ASK_SECONDS)


def _by_id(servers: Sequence[McpServerDefinition]) -> Mapping[str, McpServerDefinition]:
    return {server.id: server for server in servers}


async def _until_other(source: McpServerSource, changes: Any, before: Mapping[str, McpServerDefinition]) -> None:
    """A watch may say too much; what it says too late is the fault."""
    async for _ in changes:
        if _by_id(await _asked(source)) != before:
            return
    raise AssertionError("changes() ended by itself")
