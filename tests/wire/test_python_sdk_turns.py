"""The Python SDK where turns meet: stopped, superseded, loaded again in the middle, while it waits, after a failure."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from scenarios import APPROVE, ENDLESS, REJECT, SCENARIOS, WORDS, tool
from sdk import conversation, in_thread, played, talking
from talking import HttpConversation, frame_with
from turns import middle, paused, subject

KINDS = pytest.mark.parametrize("kind", ["async", "sync"])
SLOW = f"[[pace 0.02]]{ENDLESS}"


async def shown_so_far(place, thread_id, text):
    async with HttpConversation(place.server.http) as observer:
        await frame_with(observer, thread_id, text)


@KINDS
def test_a_stop_settles_and_keeps_what_was_said_and_the_next_turn_works(shared_place, kind):
    async def scene():
        async with talking(kind, shared_place.http) as talk:
            run_id = await talk.start(SLOW)
            watching = asyncio.create_task(talk.watch())
            await shown_so_far(shared_place, talk.thread_id, "w5")
            await talk.rest(lambda client: client.runs.cancel(talk.thread_id, run_id))
            values = await talk.output()
            (message,) = (await watching).messages
            (kept,) = [text for kind, text in conversation(values) if kind == "ai"]
            assert (message.whole, message.text) == (False, kept)
            assert ENDLESS.startswith(kept.strip())
            assert 5 < len(kept.split()) < 2000
        async with talking(kind, shared_place.http, talk.thread_id) as again:
            assert await again.output() == values
        async with talking(kind, shared_place.http, talk.thread_id) as next_one:
            await next_one.start("and now?")
            assert (await next_one.watch()).texts == ["and now?"]
            told = conversation(await next_one.output())
            assert [text for kind, text in told if kind == "ai"] == [kept, "and now?"]

    played(scene())


@KINDS
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_superseded_turn_of_every_kind_gives_way_and_the_new_one_ends_with_its_own(shared_place, kind, scenario):
    async def scene():
        mark = uuid4().hex
        text = scenario.script(mark) if scenario.gate else f"{scenario.script(mark)} {ENDLESS}"
        async with talking(kind, shared_place.http) as talk:
            if scenario.gate:
                shared_place.gates.hold(f"{scenario.gate} {mark}")
            with shared_place.proxy.news_kept():
                await talk.start(text)
                watching = asyncio.create_task(talk.watch())
                if scenario.answers:
                    await paused(talk, shared_place, watching)
            if scenario.answers:
                asked = {subject(f["value"]): f["interrupt_id"] for f in await talk.interrupts(len(scenario.answers))}
                watching = await talk.answer(*((asked[name], answer) for name, answer in scenario.answers.items()))
            await middle(shared_place, talk.thread_id, scenario, mark)
            await talk.start("never mind")
            scope = await watching
            assert scope.texts[-1] == "never mind"
            told = conversation(await talk.output())
            assert told[-2:] == [("human", "never mind"), ("ai", "never mind")]
            assert [text for kind, text in told if kind == "human"] == [text, "never mind"]
            shared_place.gates.release(f"{scenario.gate} {mark}")

    played(scene())


@KINDS
def test_a_second_client_supersedes_and_both_end_with_the_new_turn(shared_place, kind):
    async def scene():
        async with talking(kind, shared_place.http) as talk:
            await talk.start(SLOW)
            first = asyncio.create_task(talk.watch())
            await shown_so_far(shared_place, talk.thread_id, "w5")
            async with talking(kind, shared_place.http, talk.thread_id) as other:
                await other.start("from elsewhere")
                assert (await other.watch()).texts == ["from elsewhere"]
                assert conversation(await other.output())[-1] == ("ai", "from elsewhere")
            assert (await first).texts == ["from elsewhere"]
            assert conversation(await talk.output())[-1] == ("ai", "from elsewhere")

    played(scene())


@KINDS
@pytest.mark.parametrize(
    "scenario", [found for found in SCENARIOS if not found.answers], ids=lambda scenario: scenario.name
)
def test_a_client_that_loads_the_thread_again_in_the_middle_sees_the_whole_turn(shared_place, kind, scenario):
    async def scene():
        mark = uuid4().hex
        if scenario.gate:
            shared_place.gates.hold(f"{scenario.gate} {mark}")
        async with talking(kind, shared_place.http) as talk:
            await talk.start(scenario.script(mark))
            await middle(shared_place, talk.thread_id, scenario, mark)
        async with talking(kind, shared_place.http, talk.thread_id) as again:
            ending = asyncio.create_task(again.output())
            again.reading_along()
            with shared_place.proxy.news_kept():
                watching = asyncio.create_task(again.watch())
                await again.seeing()
                if scenario.gate:
                    shared_place.gates.release(f"{scenario.gate} {mark}")
                scope = await watching
            scenario.check(mark, scope)
            if scenario.error:
                with pytest.raises(RuntimeError, match=scenario.error):
                    await ending
            else:
                scenario.check_state(mark, await ending)

    played(scene())


@KINDS
def test_a_question_is_there_for_a_client_that_comes_later_and_answers_it(shared_place, kind):
    async def scene():
        words = f"{tool('mail', to='ada')} {tool('mail', to='bob')} [[then]] mailed"
        async with talking(kind, shared_place.http) as talk:
            await talk.start(words)
            assert {subject(found["value"]) for found in await talk.interrupts(2)} == {"ada", "bob"}
        async with talking(kind, shared_place.http, talk.thread_id) as again:
            asked = {subject(found["value"]): found["interrupt_id"] for found in await again.interrupts(2)}
            again.reading_along()
            watching = await again.answer((asked["bob"], REJECT), (asked["ada"], APPROVE))
            assert (await watching).texts == ["mailed"]
            results = [text for kind, text in conversation(await again.output()) if kind == "tool"]
            assert len(results) == 2
            assert "mail sent to ada" in results
            assert any("not now" in text for text in results)

    played(scene())


@KINDS
def test_an_answer_that_comes_too_late_says_so(shared_place, kind):
    async def scene():
        async with talking(kind, shared_place.http) as talk:
            with shared_place.proxy.news_kept():
                await talk.start(f"{tool('mail', to='ada')} [[then]] mailed")
                await paused(talk, shared_place, asyncio.create_task(talk.watch()))
            (asked,) = await talk.interrupts(1)
            async with HttpConversation(shared_place.server.http) as faster:
                params = {"interrupt_id": asked["interrupt_id"], "response": REJECT}
                assert (await faster.command(talk.thread_id, "input.respond", params))["type"] == "success"
            with pytest.raises(RuntimeError, match=r"already_decided|no_such_interrupt|does not match"):
                await (await talk.answer((asked["interrupt_id"], APPROVE)))

    played(scene())


@KINDS
def test_a_thread_whose_last_turn_failed_is_read_again_like_any_other(shared_place, kind):
    async def scene():
        async with talking(kind, shared_place.http) as talk:
            await talk.start("first")
            await talk.output()
        async with talking(kind, shared_place.http, talk.thread_id) as failing:
            await failing.start("[[error RATE_LIMIT slow down]]")
            with pytest.raises(RuntimeError, match="slow down"):
                await failing.output()
        async with talking(kind, shared_place.http, talk.thread_id) as again:
            assert conversation(await again.output())[:2] == [("human", "first"), ("ai", "first")]

    played(scene())


@KINDS
def test_a_connection_that_breaks_again_and_again_loses_nothing(shared_place, kind):
    async def scene():
        async with talking(kind, shared_place.http) as talk:
            text = f"[[pace 0.02]]{WORDS}"
            await talk.start(text)
            watching = asyncio.create_task(talk.watch())
            await talk.seeing()
            for word in ("w5", "w15", "w25"):
                await shown_so_far(shared_place, talk.thread_id, word)
                await in_thread(shared_place.cut)
            scope = await watching
            assert scope.texts == [WORDS]
            assert len(scope.messages) == 1
            assert conversation(await talk.output()) == [("human", text), ("ai", WORDS)]

    played(scene())
