"""The checkpointer: LangGraph's conformance suite, its own saver's answers one by one, and what that saver lacks."""

from __future__ import annotations

import asyncio
import inspect
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pizzabot_builtin_plugins.sqlite_storage import checkpoints
from pizzabot_builtin_plugins.sqlite_storage.graph import CHECKPOINTS, GraphFiles
from pizzabot_hookspecs import Unavailable

BASIC = ["put", "put_writes", "get_tuple", "list", "delete_thread"]
CHANNELS = ("messages", "files")


def play(folder: Path, scenario: Callable[[Any], Coroutine[Any, Any, None]], *, busy: float = 5.0) -> None:
    async def opened() -> None:
        files = GraphFiles(folder, busy_timeout_seconds=busy)
        try:
            await scenario(await files.checkpointer())
        finally:
            await files.close()

    asyncio.run(opened())


def place(thread: str = "t", namespace: str = "", checkpoint: str | None = None) -> dict[str, Any]:
    found = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": found if checkpoint is None else {**found, "checkpoint_id": checkpoint}}


def state(checkpoint_id: str, **values: Any) -> dict[str, Any]:
    from langgraph.checkpoint.base import empty_checkpoint

    versions = dict.fromkeys(values, "1")
    fixed = {"id": checkpoint_id, "ts": "2026-11-30T20:00:00+00:00", "channel_values": values}
    return {**empty_checkpoint(), **fixed, "channel_versions": versions}


async def put(saver: Any, number: int, *, thread: str = "t", parent: str | None = None) -> None:
    await saver.aput(place(thread, "", parent), state(f"{number:08}", n=number), {"source": "loop", "step": number}, {})


async def listed(saver: Any, *arguments: Any, **more: Any) -> list[Any]:
    return [item async for item in saver.alist(*arguments, **more)]


def test_it_passes_langgraphs_conformance_suite(tmp_path: Path) -> None:
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    numbers = iter(range(100))

    @checkpointer_test(name="checkpoints.sqlite")
    async def fresh() -> AsyncIterator[Any]:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        files = GraphFiles(folder, busy_timeout_seconds=5)
        yield await files.checkpointer()
        await files.close()

    results = asyncio.run(validate(fresh)).results
    assert {name: result.failures for name, result in results.items() if result.failures} == {}
    assert [name for name, result in results.items() if result.passed] == BASIC


def test_it_answers_as_langgraphs_own_saver_does_through_a_random_script(tmp_path: Path) -> None:
    """600 operations on both, each with a file of its own; at the end each reads the other's file."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    theirs = tmp_path / "theirs"
    theirs.mkdir()
    script = random.Random(7)

    async def scenario(mine: Any) -> None:
        serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        async with AsyncSqliteSaver.from_conn_string(str(theirs / CHECKPOINTS)) as other:
            other.serde = serde
            for step in range(600):
                operation = _operation(script, step)
                assert await operation(mine) == await operation(other), step
            both = await listed(mine, None), await listed(other, None)
            assert both[0] == both[1]
            assert len(both[0]) > 50
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / CHECKPOINTS)) as other:
            other.serde = serde
            assert await listed(other, None) == both[0]

    async def on_theirs(mine: Any) -> None:
        assert len(await listed(mine, None)) > 50

    play(tmp_path, scenario)
    play(theirs, on_theirs)


def _operation(script: random.Random, step: int) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    from langchain_core.messages import HumanMessage

    thread, namespace = script.choice("abc"), script.choice(("", "sub:1"))
    checkpoint = f"{script.randrange(step + 1):08}"
    parent = script.choice((None, checkpoint))
    values = {"messages": [HumanMessage(f"pizza {step} 🍕", id=str(step))], "files": {"a": step}}
    metadata: dict[str, Any] = {"source": script.choice(("loop", "input")), "step": step % 5, "parents": {}}
    writes = [("messages", [HumanMessage("w", id="w")]), (script.choice(("files", "__error__")), step)]
    filter_, limit = script.choice((None, {"source": "loop"}, {"step": 3})), script.choice((None, 1, 5, 40))
    before = script.choice((None, place(thread, "", checkpoint)))
    config = script.choice((None, {"configurable": {"thread_id": thread}}, place(thread, namespace)))
    wanted = script.choice((None, checkpoint))
    operations: list[Callable[[Any], Coroutine[Any, Any, Any]]] = [
        lambda s: s.aput(place(thread, namespace, parent), state(f"{step:08}", **values), metadata, {}),
        lambda s: s.aput(place(thread, namespace, parent), state(f"{step:08}"), metadata, {}),
        lambda s: s.aput_writes(place(thread, namespace, checkpoint), writes, "task", "path"),
        lambda s: s.aput_writes(place(thread, namespace, checkpoint), [("__error__", "no")], "task"),
        lambda s: s.aget_tuple(place(thread, namespace, wanted)),
        lambda s: listed(s, config, filter=filter_, before=before, limit=limit),
        lambda s: s.aget_delta_channel_history(config=place(thread, namespace, wanted), channels=CHANNELS),
    ]
    if step % 100 == 99:
        return lambda s: s.adelete_thread(thread)
    return script.choice(operations)


def test_every_asynchronous_method_of_the_parent_has_one_of_its_own() -> None:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    own = vars(checkpoints.Checkpoints)
    asynchronous = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    missing = {name for name, value in vars(AsyncSqliteSaver).items() if any(kind(value) for kind in asynchronous)}
    assert missing - set(own) == set(), "they would look for the parent's connection"


def test_a_paused_listing_holds_up_no_write(tmp_path: Path) -> None:
    async def scenario(saver: Any) -> None:
        for number in range(100):
            await put(saver, number)
        listings = [saver.alist(place()) for _ in range(20)]
        assert [(await anext(listing)).checkpoint["id"] for listing in listings] == ["00000099"] * 20
        async with asyncio.timeout(2):
            await put(saver, 100)
            await saver.aget_tuple(place())
            await saver.adelete_thread("other")
        rest = [item.checkpoint["id"] async for item in listings[0]]
        assert rest == [f"{number:08}" for number in reversed(range(99))], "none is lost, none comes twice"

    play(tmp_path, scenario)


def test_a_listing_over_threads_loses_none_of_those_with_the_same_id(tmp_path: Path) -> None:
    async def scenario(saver: Any) -> None:
        many = checkpoints.LISTED_AT_ONCE * 2 + 3
        for thread in range(many):
            await put(saver, 1, thread=str(thread))
        for number in (0, 2, 3):
            await put(saver, number, thread="other")
        found = [item.config["configurable"] for item in await listed(saver, None)]
        assert len({(item["thread_id"], item["checkpoint_id"]) for item in found}) == len(found) == many + 3
        assert [item["checkpoint_id"] for item in found] == sorted(
            (item["checkpoint_id"] for item in found), reverse=True
        )
        assert len(await listed(saver, None, limit=many)) == many
        assert await listed(saver, None, limit=0) == []

    play(tmp_path, scenario)


def test_a_cancelled_write_is_stored_whole_or_not_at_all_and_the_next_one_works(tmp_path: Path) -> None:
    async def scenario(saver: Any) -> None:
        for number in range(50):
            await put(saver, number)
            config = place("t", "", f"{number:08}")
            writing = asyncio.create_task(saver.aput_writes(config, [("a", 1), ("b", 2), ("c", 3)], "task"))
            for _ in range(number % 3):
                await asyncio.sleep(0)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await put(saver, 50)
        kept = {len(item.pending_writes) for item in await listed(saver, place())}
        assert kept == {0, 3}

    play(tmp_path, scenario)


def test_what_is_handed_over_is_stored_before_closing_ends(tmp_path: Path) -> None:
    async def first() -> list[Any]:
        files = GraphFiles(tmp_path, busy_timeout_seconds=5)
        saver: Any = await files.checkpointer()
        writes = [asyncio.create_task(put(saver, number)) for number in range(200)]
        await asyncio.sleep(0)
        await files.close()
        ended = await asyncio.gather(*writes, return_exceptions=True)
        for late in (saver.aget_tuple(place()), put(saver, 1), saver.adelete_thread("t"), listed(saver, place())):
            with pytest.raises(Unavailable) as caught:
                await late
            assert caught.value.code == "storage_closed"
        return ended

    assert asyncio.run(first()) == [None] * 200

    async def second(saver: Any) -> None:
        assert len(await listed(saver, place())) == 200

    play(tmp_path, second)


def test_a_file_that_another_process_holds_is_storage_failed_and_works_again(tmp_path: Path) -> None:
    async def scenario(saver: Any) -> None:
        await put(saver, 1)
        with closing(sqlite3.connect(tmp_path / CHECKPOINTS, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for refused in (
                put(saver, 2),
                saver.aput_writes(place("t", "", "00000001"), [("a", 1)], "task"),
                saver.adelete_thread("t"),
            ):
                with pytest.raises(Unavailable, match=r"checkpoints\.sqlite") as caught:
                    await refused
                assert caught.value.code == "storage_failed"
            assert (await saver.aget_tuple(place())).checkpoint["id"] == "00000001", "reads go on"
            other.execute("ROLLBACK")
        await put(saver, 2)
        assert (await saver.aget_tuple(place())).checkpoint["id"] == "00000002"

    play(tmp_path, scenario, busy=0.1)


def test_what_cannot_be_serialized_spoils_no_other_write(tmp_path: Path) -> None:
    async def scenario(saver: Any) -> None:
        bad = saver.aput(place(), state("00000009", lock=asyncio.Lock()), {}, {})
        ended = await asyncio.gather(put(saver, 1), bad, put(saver, 2), return_exceptions=True)
        assert [type(item) for item in (ended[0], ended[2])] == [type(None)] * 2
        assert isinstance(ended[1], TypeError)
        assert [item.checkpoint["id"] for item in await listed(saver, place())] == ["00000002", "00000001"]

    play(tmp_path, scenario)


def test_values_are_stored_as_they_were_when_the_write_was_asked_for(tmp_path: Path) -> None:
    async def scenario(saver: Any) -> None:
        growing = [1]
        writing = asyncio.create_task(saver.aput(place(), state("00000001", list=growing), {}, {}))
        await asyncio.sleep(0)
        growing.append(2)
        await writing
        assert (await saver.aget_tuple(place())).checkpoint["channel_values"] == {"list": [1]}

    play(tmp_path, scenario)


def test_it_can_be_called_from_another_thread_but_not_from_its_loops_own(tmp_path: Path) -> None:
    async def scenario(saver: Any) -> None:
        def in_a_thread() -> tuple[Any, list[Any]]:
            saver.put(place(), state("00000001"), {"step": 1}, {})
            saver.put_writes(place("t", "", "00000001"), [("a", 1)], "task")
            return saver.get_tuple(place()), list(saver.list(place()))

        found, all_found = await asyncio.to_thread(in_a_thread)
        assert all_found == [found]
        assert found.pending_writes == [("task", "a", 1)]
        with pytest.raises(asyncio.InvalidStateError):
            saver.get_tuple(place())

    play(tmp_path, scenario)


def test_a_file_from_before_the_paths_of_tasks_is_gone_on_with(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / CHECKPOINTS)) as old:
        old.execute(
            "CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT "
            "NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB, "
            "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))"
        )

    async def scenario(saver: Any) -> None:
        await put(saver, 1)
        await saver.aput_writes(place("t", "", "00000001"), [("a", 1)], "task", "path")
        assert (await saver.aget_tuple(place())).pending_writes == [("task", "a", 1)]

    play(tmp_path, scenario)
