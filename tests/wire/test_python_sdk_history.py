"""History through the Python SDK: earlier states, a state read by its checkpoint, a written state, and a fork."""

from __future__ import annotations

from itertools import pairwise

import pytest
from sdk import conversation, played, talking

KINDS = pytest.mark.parametrize("kind", ["async", "sync"])
FIRST = [("human", "first"), ("ai", "first")]
SECOND = [("human", "second"), ("ai", "second")]


async def spoken(place, kind, *texts):
    """A thread in which these were said, one turn each."""
    thread_id = None
    for text in texts:
        async with talking(kind, place.http, thread_id) as talk:
            await talk.start(text)
            await talk.output()
            thread_id = talk.thread_id
    return thread_id


def messages(state):
    return conversation(state["values"]) if state["values"].get("messages") else []


async def after_the_first_turn(talk):
    """The newest state in which only the first turn has happened."""
    history = await talk.rest(lambda client: client.threads.get_history(talk.thread_id, limit=100))
    return next(state for state in history if messages(state) == FIRST)


@KINDS
def test_history_is_newest_first_limited_and_goes_on_before_a_checkpoint(shared_place, kind):
    async def scene():
        thread_id = await spoken(shared_place, kind, "first", "second")
        async with talking(kind, shared_place.http, thread_id) as talk:
            history = await talk.rest(lambda client: client.threads.get_history(thread_id, limit=100))
            state = await talk.rest(lambda client: client.threads.get_state(thread_id))
            assert messages(history[0]) == messages(state) == FIRST + SECOND
            assert history[0]["checkpoint"] == state["checkpoint"]
            times = [entry["created_at"] for entry in history]
            assert times == sorted(times, reverse=True)
            for newer, older in pairwise(history):
                assert newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
            assert len(await talk.rest(lambda client: client.threads.get_history(thread_id, limit=2))) == 2
            before = {"configurable": {"checkpoint_id": history[1]["checkpoint"]["checkpoint_id"]}}
            rest = await talk.rest(lambda client: client.threads.get_history(thread_id, limit=100, before=before))
            assert [entry["checkpoint"] for entry in rest] == [entry["checkpoint"] for entry in history[2:]]
            for entry in history:
                assert not [key for key in entry["values"] if key.startswith("_")]

    played(scene())


@KINDS
def test_a_state_is_read_by_its_checkpoint(shared_place, kind):
    async def scene():
        thread_id = await spoken(shared_place, kind, "first", "second")
        async with talking(kind, shared_place.http, thread_id) as talk:
            old = await after_the_first_turn(talk)
            by_object = await talk.rest(
                lambda client: client.threads.get_state(thread_id, checkpoint=old["checkpoint"])
            )
            by_id = await talk.rest(
                lambda client: client.threads.get_state(thread_id, checkpoint_id=old["checkpoint"]["checkpoint_id"])
            )
            assert messages(by_object) == messages(by_id) == FIRST
            assert by_object["checkpoint"]["checkpoint_id"] == old["checkpoint"]["checkpoint_id"]

    played(scene())


@KINDS
def test_a_written_state_is_what_the_next_turn_goes_on_from(shared_place, kind):
    async def scene():
        thread_id = await spoken(shared_place, kind, "first")
        async with talking(kind, shared_place.http, thread_id) as talk:
            written = {"messages": [{"role": "user", "content": "by hand"}]}
            answer = await talk.rest(lambda client: client.threads.update_state(thread_id, written))
            assert answer["checkpoint"]["checkpoint_id"]
            state = await talk.rest(lambda client: client.threads.get_state(thread_id))
            assert messages(state) == [*FIRST, ("human", "by hand")]
            assert state["next"] == []
            assert state["checkpoint"]["checkpoint_id"] == answer["checkpoint"]["checkpoint_id"]
        told = await spoken_on(shared_place, kind, thread_id, "after it")
        assert told == [*FIRST, ("human", "by hand"), ("human", "after it"), ("ai", "after it")]

    played(scene())


@KINDS
def test_a_fork_goes_on_from_the_checkpoint_and_the_other_branch_stays_in_history(shared_place, kind):
    async def scene():
        thread_id = await spoken(shared_place, kind, "first", "second")
        async with talking(kind, shared_place.http, thread_id) as talk:
            old = await after_the_first_turn(talk)
            checkpoint_id = old["checkpoint"]["checkpoint_id"]
            await talk.start("instead", config={"configurable": {"checkpoint_id": checkpoint_id}})
            assert (await talk.watch()).texts == ["instead"]
            assert conversation(await talk.output()) == [*FIRST, ("human", "instead"), ("ai", "instead")]
            history = await talk.rest(lambda client: client.threads.get_history(thread_id, limit=100))
            assert [*FIRST, *SECOND] in [messages(state) for state in history]
        told = await spoken_on(shared_place, kind, thread_id, "go on")
        assert told == [*FIRST, ("human", "instead"), ("ai", "instead"), ("human", "go on"), ("ai", "go on")]

    played(scene())


async def spoken_on(place, kind, thread_id, text):
    async with talking(kind, place.http, thread_id) as talk:
        await talk.start(text)
        return conversation(await talk.output())
