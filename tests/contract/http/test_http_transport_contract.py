"""The HTTP transport keeps `TransportContract`, and the suite notices transports that do not."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from urllib.parse import quote, unquote

import httpx
import pytest

from pizzabot.testing.transport_contract import ExportedFile, TransportClient, TransportContract
from pizzabot_hookspecs import PizzabotError


class HttpClient:
    """A `TransportClient` that speaks to the HTTP transport."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def create_thread(self, thread_id=None, /, *, metadata=None, if_exists="raise"):
        body = {"thread_id": thread_id, "metadata": metadata or {}, "if_exists": if_exists}
        return _answer(await self.http.post("/threads", json=body))

    async def command(self, thread_id, body, /):
        return (await self.http.post(f"/threads/{thread_id}/commands", json=body)).json()

    async def events(self, thread_id, /, *, channels, namespaces=(), depth=None, since=None):
        wanted = {"channels": list(channels), "namespaces": [list(item) for item in namespaces]}
        wanted |= {} if depth is None else {"depth": depth}
        wanted |= {} if since is None else {"since": since}
        async with self.http.stream("POST", f"/threads/{thread_id}/stream/events", json=wanted) as response:
            if response.status_code != 200:
                await response.aread()
                _answer(response)
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    async def state(self, thread_id, /):
        return _answer(await self.http.get(f"/threads/{thread_id}/state"))

    async def history(self, thread_id, /, *, limit=10, before=None, namespace=()):
        wanted = {"limit": limit, "before": before, "checkpoint": {"checkpoint_ns": "\0".join(namespace)}}
        return _answer(await self.http.post(f"/threads/{thread_id}/history", json=wanted))

    async def activity(self):
        async with self.http.stream("GET", "/threads/events") as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    async def transcript(self, thread_id, /, *, namespace=(), **wanted):
        query = {key: value for key, value in wanted.items() if value is not None}
        query |= {"namespace": "|".join(namespace)} if namespace else {}
        return _answer(await self.http.get(f"/threads/{thread_id}/transcript", params=query))

    async def items(self, thread_id, turn_id, /, **wanted):
        return _answer(
            await self.http.get(f"/threads/{thread_id}/turns/{quote(turn_id, safe='')}/items", params=wanted)
        )

    async def tool_text(self, thread_id, call_id, part, /, *, item_id=None):
        called = quote(call_id, safe="").replace(".", "%2E")
        query = {} if item_id is None else {"item": item_id}
        response = await self.http.get(f"/threads/{thread_id}/tool-calls/{called}/{part}", params=query)
        return response.text if response.status_code == 200 else _answer(response)

    async def export(self, thread_id, /, **wanted):
        response = await self.http.get(f"/threads/{thread_id}/export", params=wanted)
        if response.status_code != 200:
            _answer(response)
        return ExportedFile(
            body=response.content,
            media_type=response.headers["content-type"],
            file_name=response.headers["content-disposition"].partition('filename="')[2].rstrip('"'),
            as_of_seq=int(response.headers["pizzabot-as-of-seq"]),
            turns=int(response.headers["pizzabot-turns"]),
        )

    @asynccontextmanager
    async def begin_export(self, thread_id, /):
        async with self.http.stream("GET", f"/threads/{thread_id}/export"):
            yield

    async def choose_head(self, thread_id, turn_id, /):
        return _answer(await self.http.put(f"/threads/{thread_id}/head", json={"turnId": turn_id}))

    async def fork(self, thread_id, turn_id=None, /, *, new_thread_id=None):
        body = {"turnId": turn_id, "threadId": new_thread_id}
        return _answer(await self.http.post(f"/threads/{thread_id}/fork", json=body))

    async def compact(self, thread_id, /, *, idempotency_key=None):
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        return _answer(await self.http.post(f"/threads/{thread_id}/compact", headers=headers))

    async def stop(self, thread_id, run_id, /):
        return _answer(await self.http.post(f"/threads/{thread_id}/runs/{run_id}/cancel?wait=1"))["status"]


def _answer(response):
    body = response.json()
    if response.status_code not in (200, 201):
        raise PizzabotError(body["error"], body["detail"])
    return body


class Contract(TransportContract):
    """The suite on a real server. `wrap` is where the faults come in."""

    history = True
    activity = True
    transcripts = True
    wrap = staticmethod(lambda client: client)

    @pytest.fixture(autouse=True)
    def _server(self, serve):
        self.serve = serve

    @asynccontextmanager
    async def client(self, host) -> AsyncIterator[TransportClient]:
        async with self.serve(host) as served, httpx.AsyncClient(base_url=served.address, timeout=30) as http:
            yield self.wrap(HttpClient(http))


class TestHttp(Contract):
    """Every test of the suite."""


class Faulty(HttpClient):
    def __init__(self, right: HttpClient) -> None:
        super().__init__(right.http)


class LosesAFrame(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **wanted):
            if frame["seq"] != 3:
                yield frame


class RepeatsAFrame(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **wanted):
            yield frame
            if frame["seq"] == 2:
                yield frame


class SwapsTwoFrames(Faulty):
    async def events(self, thread_id, /, **wanted):
        held = None
        async for frame in super().events(thread_id, **wanted):
            if frame["seq"] == 2:
                held = frame
                continue
            yield frame
            if held:
                yield held
                held = None


class IgnoresTheCursor(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **{**wanted, "since": 0}):
            yield frame


class ReplaysEverythingToNewcomers(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **{**wanted, "since": wanted.get("since") or 0}):
            yield frame


class EndsWithTheRun(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **wanted):
            yield frame
            if frame["params"]["data"].get("event") == "completed":
                return


class IgnoresTheChannels(Faulty):
    async def events(self, thread_id, /, *, channels, **wanted):
        async for frame in super().events(thread_id, channels=("lifecycle", "values", "messages"), **wanted):
            yield frame


class IgnoresNamespaces(Faulty):
    async def events(self, thread_id, /, *, channels, since=None, **wanted):
        async for frame in super().events(thread_id, channels=channels, since=since):
            yield frame


class RefusesUnknownThreads(Faulty):
    async def events(self, thread_id, /, **wanted):
        await self.state(thread_id)
        async for frame in super().events(thread_id, **wanted):
            yield frame


class LosesWhatIsNotLatin(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **wanted):
            yield json.loads(json.dumps(frame, ensure_ascii=False).encode("ascii", "replace"))


class SplitsLinesAtU2028(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **wanted):
            text = json.dumps(frame, ensure_ascii=False)
            with contextlib.suppress(ValueError):
                yield json.loads("".join(text.splitlines()[:1]))


class RaisesRefusedCommands(Faulty):
    async def command(self, thread_id, body, /):
        envelope = await super().command(thread_id, body)
        if envelope["type"] == "error":
            raise PizzabotError(envelope["error"], envelope["message"])
        return envelope


class ForgetsTheCommandId(Faulty):
    async def command(self, thread_id, body, /):
        return {**await super().command(thread_id, body), "id": 1}


class StopsWhateverRuns(Faulty):
    async def stop(self, thread_id, run_id, /):
        stop = {"id": 1, "method": "run.stop", "params": {}}
        return {"success": "cancelled"}.get((await super().command(thread_id, stop))["type"], "no_run")


class KeepsTheObserver(Faulty):
    """The connection stays open behind the client's back."""

    def __init__(self, right):
        super().__init__(right)
        self.kept = []

    async def events(self, thread_id, /, **wanted):
        hidden = super().events(thread_id, **wanted)
        self.kept.append(hidden)
        while True:
            yield await asyncio.shield(asyncio.ensure_future(anext(hidden)))


class TiesTheRunToTheClient(Faulty):
    async def events(self, thread_id, /, **wanted):
        try:
            async with aclosing(super().events(thread_id, **wanted)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            await super().command(thread_id, {"id": 1, "method": "run.stop", "params": {}})


class HidesTheGap(Faulty):
    async def events(self, thread_id, /, **wanted):
        async for frame in super().events(thread_id, **wanted):
            if frame["params"]["data"].get("name") != "pizzabot.gap":
                yield frame


class WaitsForTheRun(Faulty):
    async def command(self, thread_id, body, /):
        envelope = await super().command(thread_id, body)
        while isinstance(body, dict) and body["method"] == "run.start" and envelope["type"] == "success":
            await self.http.get("/ping")
            thread = (await self.http.get(f"/threads/{thread_id}")).json()
            if thread["status"] == "idle":
                break
        return envelope


class IgnoresThePage(Faulty):
    async def history(self, thread_id, /, *, limit=10, before=None, namespace=()):
        return await super().history(thread_id, limit=limit, namespace=namespace)


class TellsTheThreadsOwnStates(Faulty):
    async def history(self, thread_id, /, *, limit=10, before=None, namespace=()):
        return await super().history(thread_id, limit=limit, before=before)


class HasNoHistoryOfWhatIsNotThere(Faulty):
    async def history(self, thread_id, /, **wanted):
        with contextlib.suppress(PizzabotError):
            return await super().history(thread_id, **wanted)
        return []


class TellsOnlyTheFirst(Faulty):
    async def activity(self):
        async for told in super().activity():
            yield told
            await asyncio.Event().wait()


class ForgetsTheFirst(Faulty):
    async def activity(self):
        async for told in super().activity():
            if not told["complete"]:
                yield told


class TellsTheInboxEachTime(Faulty):
    async def activity(self):
        async for told in super().activity():
            yield {"inbox": [], **told}


class HidesWhatIsGone(Faulty):
    async def activity(self):
        async for told in super().activity():
            yield {**told, "deleted": []}


class KeepsTheFollower(KeepsTheObserver):
    async def activity(self):
        hidden = super().activity()
        self.kept.append(hidden)
        while True:
            yield await asyncio.shield(asyncio.ensure_future(anext(hidden)))


class IgnoresThePlace(Faulty):
    async def transcript(self, thread_id, /, *, before_seq=None, around_seq=None, **wanted):
        return await super().transcript(thread_id, **wanted)


class TellsOnlyWhatIsSettled(Faulty):
    async def transcript(self, thread_id, /, **wanted):
        page = await super().transcript(thread_id, **wanted)
        return {**page, "turns": [turn for turn in page["turns"] if turn["status"] != "running"]}


class ShowsTheHeadAlone(Faulty):
    async def transcript(self, thread_id, /, *, head=None, **wanted):
        return await super().transcript(thread_id, **wanted)


class DecodesCallsTwice(Faulty):
    async def tool_text(self, thread_id, call_id, part, /, **wanted):
        return await super().tool_text(thread_id, unquote(call_id), part, **wanted)


class CutsTexts(Faulty):
    async def tool_text(self, thread_id, call_id, part, /, **wanted):
        return (await super().tool_text(thread_id, call_id, part, **wanted))[:100_000]


class CutsExports(Faulty):
    async def export(self, thread_id, /, **wanted):
        made = await super().export(thread_id, **wanted)
        return replace(made, body=made.body[:500_000])


class KeepsTheExport(Faulty):
    @asynccontextmanager
    async def begin_export(self, thread_id, /):
        self.kept = super().begin_export(thread_id)
        await self.kept.__aenter__()
        yield


class ForksTheWhole(Faulty):
    async def fork(self, thread_id, turn_id=None, /, **wanted):
        return await super().fork(thread_id, **wanted)


class LosesTheKey(Faulty):
    async def compact(self, thread_id, /, **wanted):
        return await super().compact(thread_id)


FAULTS = [
    (IgnoresThePlace, "test_a_page_shows_what_was_said_and_goes_on_where_the_one_before_ended"),
    (TellsOnlyWhatIsSettled, "test_a_page_is_what_the_host_says_with_what_is_being_written_now"),
    (ShowsTheHeadAlone, "test_the_path_to_another_head_and_a_subagents_items_are_told"),
    (DecodesCallsTwice, "test_a_tool_call_is_told_in_full_whatever_its_id"),
    (CutsTexts, "test_a_tool_call_is_told_in_full_whatever_its_id"),
    (CutsExports, "test_an_export_is_whole_and_says_what_is_in_it"),
    (KeepsTheExport, "test_a_client_that_leaves_closes_its_export"),
    (ForksTheWhole, "test_a_head_is_chosen_and_a_thread_is_forked"),
    (LosesTheKey, "test_a_context_is_shortened_once_for_one_key"),
    (LosesAFrame, "test_frames_come_whole_in_order_and_without_gaps"),
    (RepeatsAFrame, "test_frames_come_whole_in_order_and_without_gaps"),
    (SwapsTwoFrames, "test_frames_come_whole_in_order_and_without_gaps"),
    (IgnoresTheCursor, "test_a_cursor_replays_exactly_what_was_stored_after_it"),
    (ReplaysEverythingToNewcomers, "test_without_a_cursor_only_the_latest_run_is_replayed"),
    (EndsWithTheRun, "test_a_connection_goes_on_across_runs"),
    (IgnoresTheChannels, "test_only_the_channels_that_were_asked_for_come"),
    (IgnoresNamespaces, "test_namespaces_and_depth_are_passed_on"),
    (RefusesUnknownThreads, "test_an_unknown_thread_is_silence_and_then_its_first_run"),
    (LosesWhatIsNotLatin, "test_every_character_arrives_as_it_was_said"),
    (SplitsLinesAtU2028, "test_every_character_arrives_as_it_was_said"),
    (RaisesRefusedCommands, "test_a_refused_command_comes_back_as_an_envelope_with_its_id_and_code"),
    (ForgetsTheCommandId, "test_an_unknown_command_and_one_that_is_none_are_envelopes_too"),
    (StopsWhateverRuns, "test_stopping_ends_the_run_and_a_stale_run_id_touches_nothing"),
    (KeepsTheObserver, "test_a_client_that_leaves_frees_its_observer_and_not_the_run"),
    (TiesTheRunToTheClient, "test_a_client_that_leaves_frees_its_observer_and_not_the_run"),
    (HidesTheGap, "test_a_cursor_that_retention_overtook_gets_a_gap_first"),
    (WaitsForTheRun, "test_a_command_is_answered_before_its_run_has_ended"),
    (IgnoresThePage, "test_a_page_goes_on_before_the_last_state_of_the_page_before"),
    (TellsTheThreadsOwnStates, "test_a_subagents_own_states_are_those_of_its_namespace"),
    (HasNoHistoryOfWhatIsNotThere, "test_the_history_of_what_is_not_there_or_not_the_callers_is_refused"),
    (TellsOnlyTheFirst, "test_a_follower_is_told_of_a_thread_its_run_and_its_end"),
    (ForgetsTheFirst, "test_the_first_that_a_follower_is_told_is_everything_of_its_own"),
    (TellsTheInboxEachTime, "test_a_follower_is_told_of_the_inbox_where_it_changed_and_only_there"),
    (HidesWhatIsGone, "test_a_follower_is_told_of_a_thread_its_run_and_its_end"),
    (KeepsTheFollower, "test_a_follower_that_leaves_is_let_go"),
]


@pytest.mark.parametrize(("fault", "noticed_by"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
def test_a_faulty_transport_is_noticed(fault, noticed_by, serve):
    class Broken(Contract):
        wrap = fault
        patience = 2.0

    suite = Broken()
    suite.serve = serve
    with pytest.raises((AssertionError, TimeoutError, PizzabotError, StopAsyncIteration, KeyError)):
        getattr(suite, noticed_by)()
