"""Which watchers of the Python SDK are shown a run that has ended already."""

import asyncio
import json

import pytest

from pizzabot_builtin_plugins.http_server.reattachment import MAX_EXPECTED, RETURN_SECONDS, Reattachment, Watched
from pizzabot_hookspecs.host import EventBatch
from pizzabot_hookspecs.storage_backends import StoredEvent

KEY = ("local", "t")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def known(clock):
    return Reattachment(clock)


def started(known, key=KEY):
    with known.run_starts(key) as start:
        start.came_about()


def told(watch, *events):
    """Write these root lifecycle events to the watcher, one batch each; the last one is only handed over."""

    async def batches():
        for seq, event in enumerate(events, start=1):
            data = json.dumps({"event": event}).encode()
            stored = StoredEvent(seq=seq, thread_id="t", run_id="r", method="lifecycle", data=data, timestamp=1)
            yield EventBatch(events=[stored])

    async def read():
        reader = Watched(watch, batches())
        for _ in events:
            await anext(reader)
        return reader

    return asyncio.run(read())


def test_a_watcher_that_was_there_before_its_run_is_shown_nothing_older(known):
    assert known.opens(KEY).came_first


def test_one_that_comes_after_run_start_is_shown_the_run(known):
    started(known)
    assert not known.opens(KEY).came_first


def test_one_that_returns_before_it_was_told_the_end_is_shown_the_run(known):
    watch = known.opens(KEY)
    started(known)
    watch.release()
    assert not known.opens(KEY).came_first


def test_one_whose_connection_broke_while_the_end_was_being_written_is_shown_the_run(known):
    watch = known.opens(KEY)
    started(known)
    told(watch, "running", "completed")
    watch.release()
    assert not known.opens(KEY).came_first


def test_once_the_end_was_written_the_next_one_is_shown_nothing_older(known):
    watch = known.opens(KEY)
    started(known)
    told(watch, "running", "completed", "running")
    watch.release()
    assert known.opens(KEY).came_first


def test_one_that_comes_long_after_the_other_went_begins_anew(known, clock):
    watch = known.opens(KEY)
    started(known)
    watch.release()
    clock.now += RETURN_SECONDS + 1
    assert known.opens(KEY).came_first


def test_a_run_that_was_refused_is_not_waited_for(known):
    with known.run_starts(KEY):
        pass
    assert known.opens(KEY).came_first


def test_a_watcher_that_is_opened_while_run_start_is_under_way_is_not_shown_the_run_before(known):
    with known.run_starts(KEY) as start:
        assert known.opens(KEY).came_first
        start.came_about()


def test_a_run_that_has_ended_before_its_run_start_is_answered_is_not_waited_for(known):
    watch = known.opens(KEY)
    with known.run_starts(KEY) as start:
        told(watch, "running", "completed", "running")
        start.came_about()
    watch.release()
    assert known.opens(KEY).came_first


def test_a_thousand_threads_are_remembered_and_the_oldest_is_forgotten_first(known):
    for number in range(MAX_EXPECTED + 1):
        started(known, ("local", f"t{number}"))
    assert known.opens(("local", "t0")).came_first
    assert not known.opens(("local", "t1")).came_first


def test_releasing_twice_counts_once(known):
    first, second = known.opens(KEY), known.opens(KEY)
    started(known)
    first.release()
    first.release()
    assert not known.opens(KEY).came_first
    second.release()
