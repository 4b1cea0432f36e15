"""Specialists that code of `eval` calls, with the real command: what they do is found, and done once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from household import Household, household
from scripting import fan_out, steps, use
from sessions import APPROVE, Session, sdk, spoken


def play(folder: Path, scene: Callable[[Household, Session, Any], Awaitable[None]]) -> None:
    async def main(house: Household) -> None:
        async with asyncio.timeout(60), sdk(house.server.http) as client:
            await scene(house, Session(client, "t"), client)

    with household(folder) as house:
        asyncio.run(main(house))


def test_what_each_specialist_of_an_eval_did_is_found_from_its_item_in_the_transcript(tmp_path: Path) -> None:
    async def scene(_house: Household, session: Session, _client: Any) -> None:
        code = fan_out("clerk", steps(use("eval", code="6 * 7"), "It is 42."), "I did nothing.")
        await session.turn(steps(use("eval", code=code), "Two clerks worked."))
        assert await session.transcript() == {
            "m1": [
                "done",
                ("eval", "It is 42. | I did nothing."),
                ("clerk", [("eval", "42"), "It is 42."], "It is 42."),
                ("clerk", ["I did nothing."], "I did nothing."),
                "Two clerks worked.",
            ]
        }
        (turn,) = (await session.get("transcript"))["turns"]
        assert [item["steps"] for item in turn["items"] if item["kind"] == "subagent"] == [1, 0]

    play(tmp_path, scene)


def test_the_stream_tells_which_call_of_an_eval_each_specialist_works_for(tmp_path: Path) -> None:
    async def scene(_house: Household, session: Session, client: Any) -> None:
        code = fan_out("clerk", "one", "two")
        started: dict[tuple[str, ...], str] = {}
        calls: dict[str, str] = {}
        run_id = await session.start(use("eval", code=code))
        async with client.threads.stream("t", assistant_id="pizza-bot") as thread:
            async for event in thread.events:
                data, namespace = event["params"]["data"], tuple(event["params"]["namespace"])
                if event["method"] == "tools" and data["event"] == "tool-started":
                    calls[data["tool_call_id"]] = data["tool_name"]
                if event["method"] == "lifecycle" and data["event"] == "started":
                    started[namespace] = data["cause"]["tool_call_id"]
                if event["method"] == "lifecycle" and not namespace and data["event"] != "running":
                    break
        assert run_id
        tasks = sorted(call for call, name in calls.items() if name == "task")
        assert len(tasks) == 2
        assert sorted(started.values()) == tasks

    play(tmp_path, scene)


def test_a_specialist_at_work_is_not_sent_again_because_another_one_of_the_eval_needs_an_approval(
    tmp_path: Path,
) -> None:
    async def scene(house: Household, session: Session, client: Any) -> None:
        house.gates.hold("baking bun", "baking pot")
        bun = steps(use("kitchen__bake", dish="bun"), "A bun.")
        pot = steps(use("kitchen__bake", dish="pot"), use("kitchen__order", dish="tea", table=1), "Tea.")
        run_id = await session.start(steps(use("eval", code=fan_out("chef", bun, pot)), "Done."))
        await asyncio.to_thread(house.gates.reached, "baking bun")
        await asyncio.to_thread(house.gates.reached, "baking pot")
        house.gates.release("baking pot")
        await session.called("kitchen__order")
        await Session(client, "other").turn("by then the approval is asked for")
        house.gates.release("baking bun")
        assert (await session.ended(run_id)).event == "interrupted"
        (asked,) = await session.waiting()
        assert (await session.answer(asked["interruptId"], APPROVE)).event == "completed"
        assert sorted(house.journal) == ["bake bun", "bake pot", "baked bun", "baked pot", "order tea for 1"]

    play(tmp_path, scene)


def test_a_stop_reaches_every_specialist_of_an_eval_and_nothing_is_done_afterwards(tmp_path: Path) -> None:
    async def scene(house: Household, session: Session, _client: Any) -> None:
        house.gates.hold("baking")
        works = [
            steps(use("kitchen__bake", dish=dish), use("kitchen__price", dish=dish), dish) for dish in ("bun", "pot")
        ]
        code = f"{fan_out('chef', *works)}; await tools.writeFile({{filePath: '/late.md', content: 'late'}})"
        run_id = await session.start(steps(use("eval", code=code), "Done."))
        await asyncio.to_thread(house.gates.reached, "baking", times=2)
        await session.stop(run_id)
        ended = await session.ended(run_id)
        assert (ended.event, ended.code) == ("completed", "CANCELLED")
        house.gates.release("baking")
        assert (await session.turn("and now?")).text == "and now?"
        await session.turn(steps(use("eval", code="20 + 22"), "Counted."))
        assert sorted(house.journal) == ["bake bun", "bake pot"]
        assert (await session.get("artifacts"))["artifacts"] == []
        results = [text for kind, text in spoken(await session.state()) if kind == "tool"]
        assert results == ["Stopped by the user while it was running. Whether it took effect is not known.", "42"]

    play(tmp_path, scene)


def test_specialists_of_an_eval_that_ask_are_each_answered_and_each_does_its_work_once(tmp_path: Path) -> None:
    """Two approvals, one refused, and a question, all of one eval, answered one by one in the reverse order."""

    async def scene(house: Household, session: Session, _client: Any) -> None:
        soup = steps(use("kitchen__bake", dish="bread"), use("kitchen__order", dish="soup", table=1), "Soup.")
        fish = steps(use("kitchen__order", dish="fish", table=2), "No fish.")
        await session.turn(steps(use("eval", code=fan_out("chef", soup, fish)), "Served."))
        answers = {"soup": APPROVE, "fish": {"decisions": [{"type": "reject"}]}}
        while waiting := await session.waiting():
            asked = waiting[-1]
            dish = asked["payload"]["action_requests"][0]["args"]["dish"]
            ended = await session.answer(asked["interruptId"], answers.pop(dish))
        assert (answers, ended.event, ended.text) == ({}, "completed", "Served.")
        assert house.journal == ["bake bread", "baked bread", "order soup for 1"]
        results = [text for kind, text in spoken(await session.state()) if kind == "tool"]
        assert results == ["Soup. | No fish."]

    play(tmp_path, scene)


def test_a_folder_taken_back_while_code_runs_is_refused_to_its_next_call(tmp_path: Path) -> None:
    async def scene(house: Household, session: Session, client: Any) -> None:
        (house.inbox / "a.txt").write_text("first")
        await client.http.post("/local-folders", json={"path": str(house.inbox), "readOnly": False})
        house.gates.hold("baking bun")
        bake = steps(use("kitchen__bake", dish="bun"), "A bun.")
        code = f"""
        const before = await tools.readFile({{filePath: '/local/inbox/a.txt'}});
        await {fan_out("chef", bake)};
        const refused = (call) => call().then(() => 'done', (error) => error.name);
        [before, await refused(() => tools.readFile({{filePath: '/local/inbox/a.txt'}})),
         await refused(() => tools.writeFile({{filePath: '/local/inbox/b.txt', content: 'late'}}))].join(' | ')
        """
        run_id = await session.start(steps(use("eval", code=code), "Done."))
        await asyncio.to_thread(house.gates.reached, "baking bun")
        await client.http.delete("/local-folders/inbox")
        house.gates.release("baking bun")
        assert (await session.ended(run_id)).text == "Done."
        results = [text for kind, text in spoken(await session.state()) if kind == "tool"]
        assert results == ["first | ToolError | ToolError"]
        assert [path.name for path in house.inbox.iterdir()] == ["a.txt"]

    play(tmp_path, scene)
