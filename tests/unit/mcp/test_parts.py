"""Lines, places for connecting, sessions that are kept a while, wishes."""

import asyncio

import pytest

from pizzabot.host.mcp.enablement import SETTING, ServerEnablement
from pizzabot.host.mcp.limits import MAX_RETIRED
from pizzabot.host.mcp.retiring import Retiring
from pizzabot.host.mcp.slots import Slots
from pizzabot_builtin_plugins.mcp_client.lines import Lines, LineTooLong


def test_lines_are_put_together_from_chunks():
    lines = Lines()
    assert list(lines.feed(b"a\nbc", 10)) == [b"a"]
    assert list(lines.feed(b"d\r\n\n  \ne", 10)) == [b"bcd"]
    assert list(lines.feed(b"\n", 10)) == [b"e"]


def test_a_line_over_the_limit_is_dropped_and_reading_goes_on():
    lines = Lines()
    with pytest.raises(LineTooLong):
        list(lines.feed(b"x" * 11, 10))
    assert list(lines.feed(b"a\n", 10)) == [b"a"]
    with pytest.raises(LineTooLong):
        list(lines.feed(b"x" * 11 + b"\n", 10))


def test_a_place_that_is_held_too_long_is_another_ones():
    async def main():
        slots = Slots(1, patience=0.01)
        async with slots.hold(), asyncio.timeout(5), slots.hold():
            pass
        async with asyncio.timeout(5), slots.hold():
            pass

    asyncio.run(main())


class Session:
    def __init__(self):
        self.gone = asyncio.Event()

    async def close(self):
        self.gone.set()


class Log:
    def __getattr__(self, _name):
        return lambda *_args, **_facts: None


async def never():
    await asyncio.Event().wait()


def test_a_session_is_not_kept_longer_than_the_bound():
    async def main():
        session = Session()
        Retiring(never, Log(), seconds=0.01).retire(session)
        async with asyncio.timeout(5):
            await session.gone.wait()

    asyncio.run(main())


def test_the_oldest_of_too_many_kept_sessions_is_closed():
    async def main():
        retiring = Retiring(never, Log())
        sessions = [Session() for _ in range(MAX_RETIRED + 1)]
        for session in sessions:
            retiring.retire(session)
        async with asyncio.timeout(5):
            await sessions[0].gone.wait()
        assert not sessions[1].gone.is_set()
        await retiring.close()
        assert all(session.gone.is_set() for session in sessions)

    asyncio.run(main())


class Storage:
    def __init__(self, value=None):
        self.values = {SETTING: value}

    async def setting(self, key, /, *, caller):
        return self.values[key]

    async def put_setting(self, key, value, /, *, caller):
        self.values[key] = value


def test_wishes_are_kept_by_owner_and_forgotten_without_a_trace():
    async def main():
        storage = Storage()
        wishes = ServerEnablement(storage)
        await wishes.load()
        await wishes.set("user", "a", False)
        await wishes.set("plugin:x", "a", True)
        assert storage.values[SETTING] == {"plugin:x": {"a": True}, "user": {"a": False}}
        again = ServerEnablement(storage)
        await again.load()
        assert (again.wish("user", "a"), again.wish("plugin:x", "a"), again.wish("user", "b")) == (False, True, None)
        await again.set("user", "a", None)
        await again.set("plugin:x", "a", None)
        assert storage.values[SETTING] is None

    asyncio.run(main())


@pytest.mark.parametrize("odd", [5, [], {"user": 1}, {"user": {"a": "yes"}}])
def test_a_stored_value_that_is_not_understood_counts_as_none(odd):
    async def main():
        wishes = ServerEnablement(Storage(odd))
        await wishes.load()
        assert wishes.wish("user", "a") is None

    asyncio.run(main())
