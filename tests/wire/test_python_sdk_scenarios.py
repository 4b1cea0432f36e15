"""The Python `langgraph-sdk`, asynchronous and synchronous, through all that a turn can be, with breaks in it."""

from __future__ import annotations

import pytest
from scenarios import SCENARIOS
from sdk import played, talking
from turns import cut, nothing, restart, turn

KINDS = ("async", "sync")


def each(scenarios=SCENARIOS):
    return pytest.mark.parametrize("scenario", scenarios, ids=lambda scenario: scenario.name)


@pytest.mark.parametrize("kind", KINDS)
@each()
def test_two_turns_in_a_row_each_show_and_end_with_their_own(shared_place, kind, scenario):
    async def scene():
        thread_id = None
        for _ in range(2):
            async with talking(kind, shared_place.http, thread_id) as talk:
                await turn(talk, shared_place, scenario, nothing)
                thread_id = talk.thread_id

    played(scene())


@pytest.mark.parametrize("kind", KINDS)
@each()
def test_a_cut_connection_in_the_middle_is_not_noticed(shared_place, kind, scenario):
    async def scene():
        async with talking(kind, shared_place.http) as talk:
            await turn(talk, shared_place, scenario, cut)
        async with talking(kind, shared_place.http, talk.thread_id) as again:
            await turn(again, shared_place, SCENARIOS[0], cut)

    played(scene())


@pytest.mark.parametrize("kind", KINDS)
@each()
def test_a_killed_server_that_comes_back_goes_on_and_nothing_is_shown_twice(place, kind, scenario):
    async def scene():
        async with talking(kind, place.http) as talk:
            await turn(talk, place, scenario, restart)
        async with talking(kind, place.http, talk.thread_id) as again:
            await turn(again, place, SCENARIOS[0], nothing)

    played(scene())
