"""States of a thread over HTTP: one by its checkpoint, the history in pages, writing one (wire.md §8)."""

import asyncio

import httpx
import pytest

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot_builtin_plugins.http_server import history
from pizzabot_hookspecs import LOCAL, Caller, InvalidRequest
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState


def asking(serve, test, **settings):
    """Run `test(http, host)` against a real server; thread `t` has three states, newest first: c3, c2, c1."""

    async def main():
        async with (
            ScriptedHost() as host,
            serve(host, **settings) as served,
            httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        ):
            await host.threads.create("t", caller=LOCAL)
            host.histories["t"] = [state(f"c{number}", step=number) for number in (3, 2, 1)]
            await test(http, host)

    asyncio.run(main())


def state(checkpoint_id, *, namespace="", **metadata):
    return {
        "values": {"messages": [{"type": "human", "content": checkpoint_id}], "files": {}},
        "next": ["model"],
        "tasks": [],
        "metadata": metadata,
        "created_at": "2026-01-01T00:00:00+00:00",
        "checkpoint": {"thread_id": "t", "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id},
        "parent_checkpoint": None,
        "interrupts": [],
    }


def ids(answer):
    assert answer.status_code == 200, answer.text
    return [entry["checkpoint"]["checkpoint_id"] for entry in answer.json()]


def test_the_history_is_a_list_of_states_as_they_are_by_get_and_by_post(serve):
    async def test(http, host):
        read = await http.get("/threads/t/history")
        assert read.headers["content-type"] == "application/json"
        assert read.json() == host.histories["t"]
        for body in (None, {}, {"limit": None, "before": None, "checkpoint": None, "metadata": None, "select": None}):
            assert (await http.post("/threads/t/history", json=body)).json() == host.histories["t"]
        host.histories["t"] = []
        assert (await http.get("/threads/t/history")).json() == []

    asking(serve, test)


@pytest.mark.parametrize(
    "before",
    ["c3", {"configurable": {"checkpoint_id": "c3"}}, {"checkpoint_id": "c3", "thread_id": "t", "checkpoint_ns": ""}],
)
def test_a_page_begins_before_a_checkpoint_however_a_client_names_it(serve, before):
    async def test(http, _):
        assert ids(await http.post("/threads/t/history", json={"before": before, "limit": 1})) == ["c2"]
        assert ids(await http.get("/threads/t/history?before=c3&limit=1")) == ["c2"]
        unknown = await http.post("/threads/t/history", json={"before": "c9"})
        assert (unknown.status_code, unknown.json()["error"]) == (404, "no_such_checkpoint")

    asking(serve, test)


@pytest.mark.parametrize("joined", ["tools:a\0tools:b", "tools:a|tools:b"])
def test_a_subagents_states_are_found_by_a_namespace_joined_in_either_way(serve, joined):
    async def test(http, host):
        host.histories["t"] += [state("i2", namespace="tools:a|tools:b"), state("i1", namespace="tools:a|tools:b")]
        named = {"checkpoint_ns": joined}
        assert ids(await http.post("/threads/t/history", json={"checkpoint": named})) == ["i2", "i1"]
        one = await http.post("/threads/t/history", json={"checkpoint": {**named, "checkpoint_id": "i1"}})
        assert ids(one) == ["i1"]
        newest = await http.post("/threads/t/state/checkpoint", json={"checkpoint": named})
        assert newest.json() == host.histories["t"][3]
        exact = await http.post("/threads/t/state/checkpoint", json={"checkpoint": {**named, "checkpoint_id": "i1"}})
        assert exact.json() == host.histories["t"][4]
        none = await http.post("/threads/t/state/checkpoint", json={"checkpoint": {**named, "checkpoint_id": "c1"}})
        assert (none.status_code, none.json()["error"]) == (404, "no_such_checkpoint")

    asking(serve, test)


def test_a_metadata_filter_leaves_the_states_that_have_these_values_and_counts_only_them(serve):
    async def test(http, host):
        host.histories["t"] = [state(f"c{number}", step=number, odd=number % 2) for number in range(60, 0, -1)]
        found = await http.post("/threads/t/history", json={"metadata": {"odd": 1}, "limit": 30})
        assert ids(found) == [f"c{number}" for number in range(59, 0, -2)]
        assert ids(await http.post("/threads/t/history", json={"metadata": {"step": 7, "odd": 1}})) == ["c7"]
        assert ids(await http.post("/threads/t/history", json={"metadata": {"missing": None}})) == []

    asking(serve, test)


def test_select_leaves_out_everything_else_of_a_state(serve):
    async def test(http, _):
        wanted = ["checkpoint", "values.messages", "values.nothing"]
        (newest,) = (await http.post("/threads/t/history", json={"limit": 1, "select": wanted})).json()
        assert set(newest) == {"checkpoint", "values"}
        assert newest["values"] == {"messages": [{"type": "human", "content": "c3"}]}
        (read,) = (await http.get("/threads/t/history?limit=1&select=next&select=metadata")).json()
        assert read == {"next": ["model"], "metadata": {"step": 3}}
        for path in ("/threads/t/state", "/threads/t/state/c1"):
            assert set((await http.get(f"{path}?select=values")).json()) == {"values"}
        named = {"checkpoint": {"checkpoint_id": "c1"}, "select": ["next"]}
        assert (await http.post("/threads/t/state/checkpoint", json=named)).json() == {"next": ["model"]}

    asking(serve, test)


def test_a_long_history_is_read_in_pages_of_few(serve):
    class Counting(ScriptedHost):
        def __init__(self):
            super().__init__()
            self.limits = []
            read = self.threads.history

            async def counted(thread_id, /, *, limit=10, **wanted):
                self.limits.append(limit)
                return await read(thread_id, limit=limit, **wanted)

            self.threads.history = counted

    async def main():
        async with (
            Counting() as host,
            serve(host) as served,
            httpx.AsyncClient(base_url=served.address, timeout=20) as http,
        ):
            await host.threads.create("t", caller=LOCAL)
            host.histories["t"] = [state(f"c{number}") for number in range(1200, 0, -1)]
            assert len(ids(await http.get("/threads/t/history?limit=1000"))) == 1000
            assert set(host.limits) == {history.PAGE_ENTRIES}
            assert len(host.limits) == 1000 // history.PAGE_ENTRIES
            host.limits.clear()
            assert ids(await http.post("/threads/t/history", json={"metadata": {"not": "there"}})) == []
            assert sum(host.limits) == history.MAX_ENTRIES

    asyncio.run(main())


def test_a_history_of_too_many_bytes_is_refused_with_the_way_out(serve, monkeypatch):
    monkeypatch.setattr(history, "MAX_HISTORY_BYTES", 800)

    async def test(http, _):
        assert len(ids(await http.get("/threads/t/history?limit=2"))) == 2
        refused = await http.get("/threads/t/history")
        assert (refused.status_code, refused.json()["error"]) == (413, "history_too_large")
        assert "select" in refused.json()["detail"]
        assert len((await http.get("/threads/t/history?select=checkpoint")).json()) == 3

    asking(serve, test)


def test_one_state_is_read_by_its_checkpoint(serve):
    async def test(http, host):
        assert (await http.get("/threads/t/state/c2")).json() == host.histories["t"][1]
        named = {"checkpoint": {"checkpoint_id": "c2", "thread_id": "t"}, "subgraphs": False}
        assert (await http.post("/threads/t/state/checkpoint", json=named)).json() == host.histories["t"][1]
        unknown = await http.get("/threads/t/state/c9")
        assert (unknown.status_code, unknown.json()["error"]) == (404, "no_such_checkpoint")

    asking(serve, test)


def test_written_values_make_a_new_state_whose_checkpoint_is_answered(serve):
    async def test(http, host):
        said = {"messages": [{"type": "human", "id": "m", "content": "hi"}]}
        body = {"values": said, "as_node": "model", "checkpoint_id": None, "checkpoint": None}
        written = (await http.post("/threads/t/state", json=body)).json()
        newest = host.histories["t"][0]["checkpoint"]
        checkpoint_id = newest["checkpoint_id"]
        assert written == {"checkpoint": newest, "checkpoint_id": checkpoint_id, "thread_id": "t"}
        assert (await http.get("/threads/t/state")).json()["values"] == said
        for named in ({"checkpoint_id": "c1"}, {"checkpoint": {"checkpoint_id": "c1", "checkpoint_ns": ""}}):
            answer = await http.post("/threads/t/state", json={"values": {}, **named})
            assert answer.status_code == 200
        for named in ({"checkpoint_id": "c9"}, {"checkpoint": {"checkpoint_id": "c9"}}):
            answer = await http.post("/threads/t/state", json={"values": {}, **named})
            assert (answer.status_code, answer.json()["error"]) == (404, "no_such_checkpoint")

    asking(serve, test)


def test_a_state_is_not_written_while_a_run_or_a_person_has_the_thread(serve):
    async def test(http, host):
        start = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"content": "hold on"}]}}}
        await host.runs.command("t", start, caller=LOCAL)
        busy = await http.post("/threads/t/state", json={"values": {}})
        assert (busy.status_code, busy.json()["error"]) == (409, "thread_busy")
        await host.runs.stop("t", caller=LOCAL)
        host.set_waiting(
            Interrupt(
                interrupt_id="i1",
                run_id="r",
                thread_id="t",
                owner="local",
                kind=InterruptKind.INPUT,
                payload={},
                namespace=(),
                state=InterruptState.OPEN,
                created_at=1.0,
            )
        )
        waiting = await http.post("/threads/t/state", json={"values": {}})
        assert (waiting.status_code, waiting.json()["error"]) == (409, "interrupt_pending")
        host.set_waiting()
        for body, code in [
            ({"values": {}, "as_node": "kitchen"}, "no_such_node"),
            ({"values": {"messages": "hi"}}, "invalid_values"),
        ]:
            answer = await http.post("/threads/t/state", json=body)
            assert (answer.status_code, answer.json()["error"]) == (400, code)

    asking(serve, test)


WRONG = [
    ("history", {"limit": 0}, "limit"),
    ("history", {"limit": 1001}, "limit"),
    ("history", {"limit": True}, "limit"),
    ("history", {"limit": "many"}, "limit"),
    ("history", {"limit": 1.5}, "limit"),
    ("history", {"before": 7}, "before"),
    ("history", {"before": ["c1"]}, "before"),
    ("history", {"before": {"configurable": {}}}, "before"),
    ("history", {"before": {"configurable": "c1"}}, "before"),
    ("history", {"before": {"configurable": {"checkpoint_id": 7}}}, "before"),
    ("history", {"checkpoint": "c1"}, "checkpoint"),
    ("history", {"checkpoint": {"checkpoint_ns": ["tools:a"]}}, "checkpoint.checkpoint_ns"),
    ("history", {"checkpoint": {"checkpoint_ns": "tools:a||tools:b"}}, "checkpoint.checkpoint_ns"),
    ("history", {"checkpoint": {"checkpoint_ns": "a|" * 40 + "a"}}, "checkpoint.checkpoint_ns"),
    ("history", {"checkpoint": {"checkpoint_ns": "a" * 257}}, "checkpoint.checkpoint_ns"),
    ("history", {"checkpoint": {"checkpoint_id": 7}}, "checkpoint.checkpoint_id"),
    ("history", {"checkpoint": {"thread_id": "another"}}, "checkpoint.thread_id"),
    ("history", {"metadata": ["step"]}, "metadata"),
    ("history", {"select": "values"}, "select"),
    ("history", {"select": ["nonsense"]}, "select"),
    ("history", {"select": ["values."]}, "select"),
    ("history", {"select": ["values"] * 65}, "select"),
    ("history", [], "body"),
    ("state/checkpoint", {}, "checkpoint"),
    ("state/checkpoint", {"checkpoint": {}}, "checkpoint"),
    ("state/checkpoint", {"checkpoint": "c1"}, "checkpoint"),
    ("state", {}, "values"),
    ("state", {"values": None}, "values"),
    ("state", {"values": [{}]}, "values"),
    ("state", {"values": {}, "as_node": 7}, "as_node"),
    ("state", {"values": {}, "checkpoint": {"checkpoint_ns": "tools:a"}}, "checkpoint.checkpoint_ns"),
    ("state", {"values": {}, "checkpoint_id": "c1", "checkpoint": {"checkpoint_id": "c2"}}, "checkpoint_id"),
]


def test_a_wrong_field_is_named_and_nothing_is_written(serve):
    async def test(http, host):
        before = list(host.histories["t"])
        for route, body, field in WRONG:
            answer = await http.post(f"/threads/t/{route}", json=body)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body
            assert set(answer.json()["fields"]) == {field}, body
        for query, field in [("limit=0", "limit"), ("limit=x", "limit"), ("select=nonsense", "select")]:
            answer = await http.get(f"/threads/t/history?{query}")
            assert (answer.status_code, set(answer.json()["fields"])) == (400, {field})
        for path in ("/threads/t/history?before=a%20b", "/threads/t/state/a%20b"):
            assert (await http.get(path)).json()["error"] == "invalid_id"
        assert host.histories["t"] == before

    asking(serve, test)


def test_everything_of_a_thread_that_is_somebody_elses_is_not_found(serve):
    async def test(http, host):
        else_ = Caller(owner="somebody-else")
        await host.threads.create("theirs", caller=else_)
        host.histories["theirs"] = [state("c1")]
        for method, path, body in [
            ("GET", "/threads/theirs", None),
            ("GET", "/threads/theirs/state", None),
            ("GET", "/threads/theirs/state/c1", None),
            ("POST", "/threads/theirs/state/checkpoint", {"checkpoint": {"checkpoint_id": "c1"}}),
            ("POST", "/threads/theirs/state/checkpoint", {"checkpoint": {"checkpoint_ns": "tools:a"}}),
            ("POST", "/threads/theirs/state", {"values": {}}),
            ("GET", "/threads/theirs/history", None),
            ("POST", "/threads/theirs/history", {}),
            ("GET", "/threads/theirs/interrupts", None),
        ]:
            answer = await http.request(method, path, json=body)
            nowhere = await http.request(method, path.replace("theirs", "nowhere"), json=body)
            assert (answer.status_code, answer.json()["error"]) == (404, "no_such_thread"), path
            assert answer.text.replace("theirs", "nowhere") == nowhere.text
        assert (await http.delete("/threads/theirs")).json() == {"deleted": False}
        assert await host.threads.get("theirs", caller=else_)

    asking(serve, test)


def test_a_host_that_keeps_no_history_says_so(serve):
    async def test(http, host):
        async def none(*_, **__):
            raise InvalidRequest("not_supported", "the agent runtime in use keeps no history")

        host.threads.history = host.threads.update_state = none
        for answer in (
            await http.get("/threads/t/history"),
            await http.post("/threads/t/history", json={}),
            await http.post("/threads/t/state", json={"values": {}}),
        ):
            assert (answer.status_code, answer.json()["error"]) == (400, "not_supported")

    asking(serve, test)
