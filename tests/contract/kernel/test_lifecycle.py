"""Start in order, stop in reverse; a stop that fails or hangs prevents no other and is told once."""

from __future__ import annotations

import asyncio

import pytest

from pizzabot.kernel import Lifecycle
from pizzabot_hookspecs import Unavailable


class Part:
    def __init__(self, name, seen, *, start=None, stop=None, gives=None):
        self.name, self.seen, self.start, self.stop, self.gives = name, seen, start, stop, gives

    async def __aenter__(self):
        if self.start is not None:
            raise self.start
        self.seen.append(f"+{self.name}")
        return self.gives

    async def __aexit__(self, *exception):
        self.seen.append(f"-{self.name}")
        if self.stop is not None:
            raise self.stop


def test_parts_are_closed_in_reverse_order_and_only_once():
    seen = []

    async def main():
        life = Lifecycle()
        for name in "abc":
            await life.enter(name, Part(name, seen))
        assert await life.aclose() == []
        assert await life.aclose() == []

    asyncio.run(main())
    assert seen == ["+a", "+b", "+c", "-c", "-b", "-a"]


def test_what_entering_gives_is_returned_and_the_object_itself_where_that_is_none():
    async def main():
        life = Lifecycle()
        part = Part("a", [])
        assert await life.enter("a", part) is part
        assert await life.enter("b", Part("b", [], gives="inside")) == "inside"
        await life.aclose()

    asyncio.run(main())


def test_an_object_that_is_no_context_manager_is_returned_as_it_is():
    async def main():
        thing = object()
        assert await Lifecycle().enter("a", thing) is thing

    asyncio.run(main())


@pytest.mark.parametrize("fault", [ValueError("stuck"), SystemExit(2)])
def test_a_failing_stop_does_not_prevent_the_others_and_is_told_once(fault):
    seen, told = [], []

    async def main():
        life = Lifecycle(on_error=lambda name, error: told.append((name, error)))
        await life.enter("a", Part("a", seen))
        await life.enter("b", Part("b", seen, stop=fault))
        await life.enter("c", Part("c", seen))
        return await life.aclose()

    assert asyncio.run(main()) == [("b", fault)] == told
    assert seen[3:] == ["-c", "-b", "-a"]


def test_a_stop_that_hangs_is_given_up_after_its_time():
    seen = []

    class Hangs(Part):
        async def __aexit__(self, *exception):
            await asyncio.Event().wait()

    async def main():
        life = Lifecycle(stop_seconds=0.01)
        await life.enter("a", Part("a", seen))
        await life.enter("b", Hangs("b", seen))
        return await life.aclose()

    ((name, error),) = asyncio.run(main())
    assert (name, type(error)) == ("b", TimeoutError)
    assert seen[-1] == "-a"


def test_a_start_that_hangs_is_given_up_after_its_time():
    class Hangs(Part):
        async def __aenter__(self):
            await asyncio.Event().wait()

    async def main():
        await Lifecycle(start_seconds=0.01).enter("db", Hangs("db", []))

    with pytest.raises(Unavailable, match='"db" did not start: TimeoutError') as caught:
        asyncio.run(main())
    assert caught.value.code == "plugin_failed"


def test_a_start_that_fails_names_the_part_and_leaves_the_others_to_be_closed():
    seen = []

    async def main():
        life = Lifecycle()
        await life.enter("a", Part("a", seen))
        with pytest.raises(Unavailable, match='"b" did not start: ValueError: no table'):
            await life.enter("b", Part("b", seen, start=ValueError("no table")))
        await life.aclose()

    asyncio.run(main())
    assert seen == ["+a", "-a"]


def test_a_pizzabot_error_of_a_start_passes_as_it_is():
    error = Unavailable("newer_schema", "install a newer pizzabot")

    async def main():
        await Lifecycle().enter("db", Part("db", [], start=error))

    with pytest.raises(Unavailable) as caught:
        asyncio.run(main())
    assert caught.value is error


def test_nothing_is_started_while_the_host_stops():
    seen = []

    async def main():
        life = Lifecycle()
        await life.aclose()
        await life.enter("late", Part("late", seen))

    with pytest.raises(Unavailable) as caught:
        asyncio.run(main())
    assert caught.value.code == "stopping"
    assert seen == []


def test_cancelling_the_close_still_stops_every_part():
    seen = []

    async def main():
        closing = asyncio.Event()

        class Slow(Part):
            async def __aexit__(self, *exception):
                closing.set()
                await asyncio.Event().wait()

        life = Lifecycle()
        await life.enter("a", Part("a", seen))
        await life.enter("b", Slow("b", seen))
        task = asyncio.create_task(life.aclose())
        await closing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == ["+a", "+b", "-a"]
