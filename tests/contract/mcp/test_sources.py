"""The file of a person's own servers keeps the contract; each faulty source has one fault, and a check fails for it."""

import asyncio
import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.testing.mcp_servers_contract import FIRST, SECOND, McpServersContract
from pizzabot_builtin_plugins.user_mcp_servers.document import Document
from pizzabot_builtin_plugins.user_mcp_servers.source import UserServers, UserServerSettings
from pizzabot_hookspecs import Conflict, InvalidRequest, PizzabotError, Unavailable
from pizzabot_hookspecs.mcp_servers import McpServerDefinition
from pizzabot_hookspecs.skill_sources import Origin


class TestUserServers(McpServersContract):
    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = tmp_path / ".mcp.json"
        self.path.write_text(json.dumps({"mcpServers": {"there": SECOND}, "other": 1}))

    def source(self):
        return UserServers(self.path)


class Team:
    """A source without a fault, in memory."""

    def __init__(self):
        self.entries = {}
        self.changed = asyncio.Event()

    async def servers(self):
        shipped = McpServerDefinition(id="shipped", entry=SECOND)
        return [shipped, *(self.made(name, entry) for name, entry in self.entries.items())]

    def made(self, name, entry):
        return McpServerDefinition(id=name, entry=entry, origin=Origin.USER)

    async def put(self, server_id, entry, /):
        self.entries[server_id] = dict(entry)
        self.changed.set()

    async def remove(self, server_id, /):
        return self.entries.pop(server_id, None) is not None

    async def changes(self):
        while True:
            await self.changed.wait()
            self.changed.clear()
            yield None


class TestTeam(McpServersContract):
    def source(self):
        return Team()


class TwiceTheSame(Team):
    async def servers(self):
        return [*await super().servers(), *await super().servers()]


class PlainDicts(Team):
    async def servers(self):
        return [{"id": "shipped"}]


class UnusableEntry(Team):
    async def servers(self):
        return [McpServerDefinition(id="shipped", entry={"type": "websocket", "url": "ws://x"})]


class ExpandsReferences(Team):
    def made(self, name, entry):
        return super().made(name, json.loads(json.dumps(entry).replace("${TOKEN}", "hunter2").replace("${X}", "y")))


class DropsUnknownKeys(Team):
    async def put(self, server_id, entry, /):
        await super().put(server_id, {key: entry[key] for key in entry if key != "of-another-product"})


class KeepsOne(Team):
    async def put(self, server_id, entry, /):
        self.entries.clear()
        await super().put(server_id, entry)


class ForgetsWhoKeeps(Team):
    def made(self, name, entry):
        return McpServerDefinition(id=name, entry=entry)


class RemovesNothing(Team):
    async def remove(self, server_id, /):
        return server_id in self.entries


class AlwaysRemoved(Team):
    async def remove(self, server_id, /):
        await super().remove(server_id)
        return True


class WatchesNothing(Team):
    async def changes(self):
        await asyncio.Event().wait()
        yield None


class WatchesOnce(Team):
    async def changes(self):
        await self.changed.wait()
        yield None


class ChangesByItself(Team):
    asked = 0

    async def servers(self):
        self.asked += 1
        return [McpServerDefinition(id=f"s{self.asked}", entry=SECOND)]


@pytest.mark.parametrize(
    ("faulty", "claim"),
    [
        (TwiceTheSame, "test_servers_are_definitions_with_unique_ids"),
        (PlainDicts, "test_servers_are_definitions_with_unique_ids"),
        (UnusableEntry, "test_every_entry_can_be_used_or_has_a_fault"),
        (ExpandsReferences, "test_a_kept_entry_is_exactly_what_was_put"),
        (DropsUnknownKeys, "test_a_kept_entry_is_exactly_what_was_put"),
        (ForgetsWhoKeeps, "test_a_kept_entry_is_exactly_what_was_put"),
        (KeepsOne, "test_writing_one_leaves_the_others_as_they_are"),
        (KeepsOne, "test_many_written_at_once_are_all_kept"),
        (RemovesNothing, "test_what_is_removed_is_gone"),
        (AlwaysRemoved, "test_what_is_removed_is_gone"),
        (WatchesNothing, "test_a_watch_tells_a_change_and_ends_when_it_is_closed"),
        (WatchesOnce, "test_a_watch_tells_a_change_and_ends_when_it_is_closed"),
        (ChangesByItself, "test_asking_again_and_at_the_same_time_gives_the_same"),
    ],
)
def test_the_contract_finds_the_fault(faulty, claim, monkeypatch):
    monkeypatch.setattr("pizzabot.testing.mcp_servers_contract.CHANGE_SECONDS", 0.3)

    class Suite(McpServersContract):
        def source(self):
            return faulty()

    with pytest.raises((AssertionError, PizzabotError, TimeoutError)):
        getattr(Suite(), claim)()


def servers_in(path):
    return asyncio.run(UserServers(path).servers())


def test_no_file_and_an_empty_one_have_no_servers(tmp_path):
    path = tmp_path / ".mcp.json"
    assert servers_in(path) == []
    path.write_text(" \n")
    assert servers_in(path) == []


def test_a_file_is_written_pretty_for_its_owner_alone_and_keeps_what_it_does_not_know(tmp_path):
    path = tmp_path / ".mcp.json"
    path.write_text('{"other": {"x": 1}, "mcpServers": {"bad": 5, "good": {"command": "a", "odd": [1]}}}')
    path.chmod(0o644)
    asyncio.run(UserServers(path).put("mine", {"command": "b", "env": {"T": "${T}"}}))
    assert path.read_text() == json.dumps(
        {
            "other": {"x": 1},
            "mcpServers": {
                "bad": 5,
                "good": {"command": "a", "odd": [1]},
                "mine": {"command": "b", "env": {"T": "${T}"}},
            },
        },
        indent=2,
    ) + "\n"  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == [".mcp.json"]


def test_a_map_without_the_outer_key_is_read_and_stays_one(tmp_path):
    path = tmp_path / ".mcp.json"
    path.write_text('{"s": {"command": "a"}}')
    source = UserServers(path)
    assert [server.id for server in asyncio.run(source.servers())] == ["s"]
    asyncio.run(source.put("t", {"command": "b"}))
    assert set(json.loads(path.read_text())) == {"s", "t"}


def test_a_link_stays_one(tmp_path):
    real, path = tmp_path / "real.json", tmp_path / ".mcp.json"
    real.write_text("{}")
    path.symlink_to(real)
    asyncio.run(UserServers(path).put("s", FIRST))
    assert path.is_symlink()
    assert "s" in json.loads(real.read_text())["mcpServers"]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b'{"mcpServers": {"a": {,}}}', "line 1, column 23"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"[1]", "has to be an object"),
        (b'{"mcpServers": []}', '"mcpServers" has to be an object'),
        (b"[" * 100_000, "cannot be read"),
        (b" " * (4 * 1024 * 1024 + 1), "more than 4,194,304"),
        (json.dumps({f"s{number}": {} for number in range(501)}).encode(), "more than 500"),
    ],
)
def test_a_file_that_is_broken_is_told_with_its_place_and_never_written_over(tmp_path, raw, told):
    path = tmp_path / ".mcp.json"
    path.write_bytes(raw)
    source = UserServers(path)
    with pytest.raises(InvalidRequest, match=told) as refused:
        asyncio.run(source.servers())
    assert str(path) in refused.value.detail
    with pytest.raises(Conflict) as damaged:
        asyncio.run(source.put("s", FIRST))
    assert damaged.value.code == "mcp_file_damaged"
    assert path.read_bytes() == raw


def test_entries_that_are_wrong_are_told_one_by_one_and_valid_ones_kept(tmp_path):
    path = tmp_path / ".mcp.json"
    path.write_text('\ufeff{"mcpServers": {"a": 5, "b": {"command": "x"}, "c": {}, "c": {"command": "y"}}}')
    faults = {server.id: server.fault for server in servers_in(path)}
    assert faults == {"a": "its entry has to be an object", "b": None, "c": "its id stands in the file twice"}
    with pytest.raises(Conflict, match='"c" stands in it twice'):
        asyncio.run(UserServers(path).put("d", FIRST))


def test_a_file_that_cannot_be_opened_is_told(tmp_path):
    path = tmp_path / ".mcp.json"
    path.mkdir()
    with pytest.raises(Unavailable, match="cannot be read"):
        servers_in(path)


def test_the_place_of_the_file_is_a_setting_and_a_whole_path():
    assert UserServerSettings.model_validate({"path": "~/x.json"}).path.is_absolute()
    with pytest.raises(ValueError, match="whole path"):
        UserServerSettings.model_validate({"path": "x.json"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused_with_a_reason(raw):
    try:
        document = Document.parse(raw, place="x")
    except InvalidRequest as error:
        assert error.detail.startswith("x cannot be used: ")  # noqa: PT017 - either will do
    else:
        before = dict(document.servers)
        document.put("s", FIRST)
        after = Document.parse(document.render(), place="x")
        assert json.dumps(after.servers) == json.dumps({**before, "s": dict(FIRST)})
