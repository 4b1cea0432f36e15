"""Lists of threads over HTTP: rows for our own pages, LangGraph's search and count, and only the caller's."""

import asyncio
from itertools import count

import httpx

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_builtin_plugins.http_server import thread_search
from pizzabot_hookspecs import LOCAL, Caller
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState


def asking(serve, test, *, threads=()):
    """Run `test(http, host)`; `threads` are made in this order, one second apart: (id, metadata)."""
    seconds = count(1_800_000_000)

    async def main():
        async with (
            ScriptedHost(clock=lambda: float(next(seconds))) as host,
            serve(host) as served,
            httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        ):
            for thread_id, metadata in threads:
                await host.threads.create(thread_id, metadata=metadata, caller=LOCAL)
            await host.threads.create("theirs", caller=Caller(owner="somebody-else"))
            await test(http, host)

    asyncio.run(main())


def start(text):
    return {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"content": text}]}}}


def waits(thread_id):
    return Interrupt(
        interrupt_id="i1", run_id="r1", thread_id=thread_id, owner="local", kind=InterruptKind.APPROVAL,
        payload={"action_requests": []}, namespace=(), state=InterruptState.OPEN, created_at=1_800_000_000.0,
    )  # fmt: skip


async def make_one_of_each_status(host):
    await host.runs.command("busy", start("hold on"), caller=LOCAL)
    await host.runs.command("broken", start("fail"), caller=LOCAL)
    await host.settled("broken")
    host.set_waiting(waits("asks"))


FOUR = [("idle", {"colour": "red"}), ("busy", {"colour": "blue"}), ("asks", {"colour": "red"}), ("broken", {})]


def found(answer):
    assert answer.status_code == 200, answer.text
    return [row["thread_id"] for row in answer.json()]


def test_the_list_has_rows_of_the_callers_threads_newest_activity_first(serve):
    async def test(http, host):
        await make_one_of_each_status(host)
        rows = (await http.get("/threads/list")).json()
        assert {row["threadId"]: (row["status"], row["awaitingAction"]) for row in rows} == {
            "idle": ("idle", False),
            "busy": ("busy", False),
            "asks": ("interrupted", True),
            "broken": ("error", False),
        }
        assert [row["lastActivityAt"] for row in rows] == sorted((row["lastActivityAt"] for row in rows), reverse=True)
        idle = next(row for row in rows if row["threadId"] == "idle")
        assert idle == {
            "threadId": "idle", "title": "New conversation", "source": "user", "status": "idle",
            "awaitingAction": False, "createdAt": "2027-01-15T08:00:00+00:00",
            "lastActivityAt": "2027-01-15T08:00:00+00:00",
        }  # fmt: skip
        for query, expected in [
            ("limit=1&offset=1", [rows[1]["threadId"]]),
            ("status=error", ["broken"]),
            ("offset=9", []),
        ]:
            assert [row["threadId"] for row in (await http.get(f"/threads/list?{query}")).json()] == expected
        for query in ("limit=0", "limit=201", "limit=x", "offset=-1", "status=tired"):
            wrong = await http.get(f"/threads/list?{query}")
            assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_request")
            assert set(wrong.json()["fields"]) == {query.partition("=")[0]}

    asking(serve, test, threads=FOUR)


def test_a_search_answers_threads_as_langgraph_has_them_without_values_but_with_what_waits(serve):
    async def test(http, host):
        await make_one_of_each_status(host)
        (row,) = (await http.post("/threads/search", json={"status": "interrupted"})).json()
        assert row == {
            "thread_id": "asks", "created_at": "2027-01-15T08:00:02+00:00", "updated_at": "2027-01-15T08:00:02+00:00",
            "metadata": {"colour": "red"}, "status": "interrupted", "values": {},
            "interrupts": {"i1": [{"id": "i1", "value": {"action_requests": []}}]},
        }  # fmt: skip
        everything = found(await http.post("/threads/search"))
        assert set(everything) == {"idle", "busy", "asks", "broken"}
        assert found(await http.post("/threads/search", json={"limit": 2, "offset": 1})) == everything[1:3]

    asking(serve, test, threads=FOUR)


def test_a_search_filters_by_metadata_ids_and_status_and_sorts(serve):
    async def test(http, host):
        await make_one_of_each_status(host)
        for body, expected in [
            ({"metadata": {"colour": "red"}, "sort_by": "created_at", "sort_order": "asc"}, ["idle", "asks"]),
            ({"metadata": {"colour": "red"}, "status": "idle"}, ["idle"]),
            ({"metadata": {"colour": "red"}, "sort_by": "created_at", "limit": 1, "offset": 1}, ["idle"]),
            ({"ids": ["idle", "nowhere", "theirs", "idle"]}, ["idle"]),
            ({"ids": ["idle", "broken"], "status": "error"}, ["broken"]),
            ({"ids": []}, []),
            ({"sort_by": "thread_id", "sort_order": "asc"}, ["asks", "broken", "busy", "idle"]),
            ({"sort_by": "thread_id"}, ["idle", "busy", "broken", "asks"]),
            ({"sort_by": "status", "sort_order": "asc"}, ["busy", "broken", "idle", "asks"]),
            ({"sort_by": "created_at", "sort_order": "desc"}, ["broken", "asks", "busy", "idle"]),
            ({"metadata": {}, "values": {}, "extract": None, "unknown": 1, "ids": ["idle"]}, ["idle"]),
        ]:
            assert found(await http.post("/threads/search", json=body)) == expected, body
        newest = found(await http.post("/threads/search", json={"sort_by": "updated_at"}))
        assert found(await http.post("/threads/search", json={"sort_order": "asc"})) == newest[::-1]

    asking(serve, test, threads=FOUR)


def test_metadata_is_contained_at_every_level_and_every_thread_is_the_one_assistants(serve):
    threads = [("plain", {"a": {"b": 1, "c": 2}, "l": [1]}), ("graph", {"graph_id": "other"})]

    async def test(http, _):
        for metadata, expected in [
            ({"a": {"b": 1}}, ["plain"]),
            ({"a": {"b": 2}}, []),
            ({"a": 1}, []),
            ({"l": [1]}, ["plain"]),
            ({"l": []}, []),
            ({"graph_id": "pizza-bot"}, ["plain"]),
            ({"assistant_id": "pizza-bot"}, ["graph", "plain"]),
            ({"graph_id": "other"}, ["graph", "plain"]),
        ]:
            assert found(await http.post("/threads/search", json={"metadata": metadata})) == expected, metadata

    asking(serve, test, threads=threads)


def test_select_leaves_those_fields_of_a_thread(serve):
    async def test(http, _):
        answer = await http.post("/threads/search", json={"select": ["status", "thread_id"]})
        assert answer.json() == [{"status": "idle", "thread_id": "t"}]

    asking(serve, test, threads=[("t", {})])


def test_a_count_is_the_number_that_a_search_would_find(serve):
    async def test(http, host):
        await make_one_of_each_status(host)
        for body, expected in [(None, 4), ({}, 4), ({"status": "idle"}, 1), ({"metadata": {"colour": "red"}}, 2)]:
            answer = await http.post("/threads/count", json=body)
            assert (answer.status_code, answer.json()) == (200, expected)

    asking(serve, test, threads=FOUR)


def test_many_threads_are_looked_at_in_pages_up_to_a_limit(serve, monkeypatch):
    monkeypatch.setattr(thread_search, "MAX_LOOKED_AT", 450)

    async def test(http, host):
        steps = []
        page = host.threads.page

        async def counted(*, limit=200, **wanted):
            steps.append(limit)
            return await page(limit=limit, **wanted)

        host.threads.page = counted
        assert (await http.post("/threads/count")).json() == 450
        assert steps == [200, 200, 50]
        assert len(found(await http.post("/threads/search", json={"limit": 1000}))) == 500
        newest = "t499"
        assert found(await http.post("/threads/search", json={"metadata": {"n": 499}})) == [newest]
        assert found(await http.post("/threads/search", json={"metadata": {"n": 3}})) == []

    asking(serve, test, threads=[(f"t{number}", {"n": number}) for number in range(500)])


def test_a_wrong_field_of_a_search_is_named(serve):
    async def test(http, _):
        for body, field in [
            ([], "body"), ({"limit": 0}, "limit"), ({"limit": 1001}, "limit"),
            ({"limit": None, "offset": -1}, "offset"),
            ({"offset": 10_001}, "offset"), ({"status": "tired"}, "status"), ({"status": ["idle"]}, "status"),
            ({"metadata": "red"}, "metadata"), ({"ids": "t"}, "ids"), ({"ids": [1]}, "ids"),
            ({"ids": [str(number) for number in range(201)]}, "ids"), ({"sort_by": "size"}, "sort_by"),
            ({"sort_order": "up"}, "sort_order"), ({"select": ["config"]}, "select"), ({"select": "status"}, "select"),
            ({"values": {"messages": []}}, "values"), ({"extract": {"a": "values.b"}}, "extract"),
        ]:  # fmt: skip
            for route in ("search", "count"):
                answer = await http.post(f"/threads/{route}", json=body)
                assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body
                assert set(answer.json()["fields"]) == {field}, body
        odd = await http.post("/threads/search", json={"ids": ["a/b"]})
        assert (odd.status_code, odd.json()["error"]) == (400, "invalid_id")

    asking(serve, test)
