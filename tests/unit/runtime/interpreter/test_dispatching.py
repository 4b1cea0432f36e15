"""Subagents that a sandbox calls: on the stream under the eval's namespace, with questions that pause the run."""

from __future__ import annotations

import asyncio
import warnings

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt
from sandboxed import agent, config, evaluates, run, text

from pizzabot.testing.scripted_model import Reply

CAUGHT = ".catch((error) => `${error.name}: ${error.message}`)"
FAN_OUT = "(await Promise.all(%s.map((description) => task({description, subagentType: 'helper'})))).join(' | ')"


def report(messages):
    return Reply(f"report on {messages[-1].content}")


async def frames_of(asking, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = await asking.graph.astream_events(given, config(), version="v3")
        async with stream:
            return [event async for event in stream]


def test_what_subagents_of_an_eval_do_is_on_the_stream_under_its_namespace():
    async def scenario():
        frames = await frames_of(agent(FAN_OUT % "['a', 'b', 'c']", team=report), {"messages": [HumanMessage("go")]})
        tools = [frame["params"]["data"] for frame in frames if frame["method"] == "tools"]
        assert [(data["event"], data["tool_call_id"]) for data in tools] == [
            ("tool-started", "e0"), ("tool-started", "e0:0"), ("tool-started", "e0:1"), ("tool-started", "e0:2"),
            ("tool-finished", "e0:0"), ("tool-finished", "e0:1"), ("tool-finished", "e0:2"), ("tool-finished", "e0"),
        ]  # fmt: skip
        spoken = {
            tuple(frame["params"]["namespace"])
            for frame in frames
            if frame["method"] == "messages" and frame["params"]["data"][0]["event"] == "message-start"
        }
        (step,) = {namespace[0] for namespace in spoken if namespace}
        assert step.startswith("tools:")
        assert spoken == {(), (step,), (step, "1"), (step, "2")}

    run(scenario())


def test_file_tools_called_in_bulk_are_not_on_the_stream():
    async def scenario():
        code = (
            "await tools.writeFile({filePath: '/a', content: 'bulk'}); (await tools.readFile({filePath: '/a'})).length"
        )
        frames = await frames_of(agent(code), {"messages": [HumanMessage("go")]})
        told = [frame["params"]["data"] for frame in frames if frame["method"] == "tools"]
        assert [data["tool_call_id"] for data in told] == ["e0", "e0"]

    run(scenario())


@tool
def ask(question: str) -> str:
    """Ask the person."""
    return str(interrupt({"question": question}))


def asking_helper(messages):
    if messages[-1].type == "human" and "ask" in messages[-1].content:
        call = {"name": "ask", "args": {"question": messages[-1].content}, "id": f"q-{messages[-1].content}"}
        return Reply(tool_calls=[call])
    return Reply(f"heard {messages[-1].content}")


QUESTIONS = f"globalThis.runs = (globalThis.runs ?? 0) + 1; const r = {FAN_OUT % repr(['ask1', 'x', 'ask2'])}; r"
ANSWERED = "heard answer to ask1 | heard x | heard answer to ask2"


async def paused(thread_of):
    """Questions that wait, by what they ask."""
    state = await thread_of.graph.aget_state(config())
    return {question.value["question"]: question.id for question in state.interrupts}


async def result_of(asking):
    (result,) = await asking.results("t")
    return result.content


def test_subagents_that_ask_pause_the_run_and_the_eval_is_run_again_with_their_answers():
    async def scenario():
        worked = []

        def helper(messages):
            worked.append(messages[-1].content)
            return asking_helper(messages)

        asking = agent(QUESTIONS, team=helper, team_tools=[ask])
        await frames_of(asking, {"messages": [HumanMessage("go")]})
        assert len(asking.interpreter.sessions) == 1
        questions = await paused(asking)
        assert list(questions) == ["ask1", "ask2"]
        answers = {id_: f"answer to {question}" for question, id_ in questions.items()}
        await frames_of(asking, Command(resume=answers))
        assert await result_of(asking) == ANSWERED
        assert len(asking.interpreter.sessions) == 0
        assert sorted(worked) == ["answer to ask1", "answer to ask2", "ask1", "ask2", "x"]

    run(scenario())


def test_answered_one_by_one_each_question_is_asked_once():
    async def scenario():
        asking = agent(QUESTIONS, team=asking_helper, team_tools=[ask])
        await frames_of(asking, {"messages": [HumanMessage("go")]})
        asked = []
        while questions := await paused(asking):
            question, id_ = questions.popitem()
            asked.append(question)
            await frames_of(asking, Command(resume={id_: f"answer to {question}"}))
        assert asked == ["ask2", "ask1"]
        assert await result_of(asking) == ANSWERED

    run(scenario())


def test_a_question_waits_for_others_at_work_and_not_for_longer_than_the_eval_may():
    async def scenario():
        def helper(messages):
            if messages[-1].content == "x":
                return Reply(tool_calls=[{"name": "dawdle", "args": {}, "id": "slow"}])
            return asking_helper(messages)

        asking = agent(QUESTIONS, team=helper, team_tools=[ask, dawdle], seconds=0.5)
        await frames_of(asking, {"messages": [HumanMessage("go")]})
        assert list(await paused(asking)) == ["ask1", "ask2"]

    run(scenario())


@tool
async def dawdle() -> str:
    """Never ends."""
    return await asyncio.Future()


def test_a_turn_that_paused_leaves_nothing_to_a_turn_that_takes_its_place():
    def says(messages):
        if messages[-1].type == "tool":
            return Reply("done")
        turns = sum(message.type == "human" for message in messages)
        code = "globalThis.kept = 1; await task({description: 'ask', subagentType: 'helper'})"
        return evaluates(code if turns == 1 else "typeof kept", call_id=f"e{turns}")

    async def scenario():
        asking = agent(says=says, team=asking_helper, team_tools=[ask])
        await frames_of(asking, {"messages": [HumanMessage("go")]})
        assert await paused(asking)
        assert len(asking.interpreter.sessions) == 1
        assert (await asking.say())[-1].content == "undefined"

    run(scenario())


def test_a_pause_is_no_error_that_the_code_could_catch():
    async def scenario():
        code = "try { await task({description: 'ask', subagentType: 'helper'}) } catch (e) { 'caught ' + e.message }"
        asking = agent(code, team=asking_helper, team_tools=[ask])
        await frames_of(asking, {"messages": [HumanMessage("go")]})
        state = await asking.graph.aget_state(config())
        await frames_of(asking, Command(resume={state.interrupts[0].id: "yes"}))
        state = await asking.graph.aget_state(config())
        assert [message.content for message in state.values["messages"] if message.type == "tool"] == ["heard yes"]

    run(scenario())


def test_a_subagent_that_cannot_be_called_or_fails_throws():
    def failing(messages):
        return Reply("", error=RuntimeError("the model of the helper is gone"))

    async def scenario():
        async def told(arguments: str, team=report) -> str:
            return await text(f"await task({arguments}){CAUGHT}", team=team)

        nobody = await told("{description: 'x', subagentType: 'nobody'}")
        assert nobody.startswith("ToolError: We cannot invoke subagent nobody because it does not exist")
        assert await told("{subagentType: 'helper'}") == "ToolError: task needs description, a text that is not empty"
        assert await told("{description: ' ', subagentType: 'helper'}") == (
            "ToolError: task needs description, a text that is not empty"
        )
        assert await told("{description: 'x', subagentType: 'helper', prompt: 'y'}") == (
            "ToolError: task has no argument prompt; it takes description, subagentType"
        )
        assert await told("'x'") == "TypeError: task takes one object of named arguments"
        assert await told("{description: 'x', subagentType: 'helper'}", failing) == (
            "ToolError: the model of the helper is gone"
        )

    run(scenario())
