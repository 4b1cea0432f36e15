"""The envelopes of commands: nothing a client sends raises (wire.md §2)."""

import pytest
from engine_rig import rig, run, start

from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller
from pizzabot_hookspecs.host import CommandOutcome


def command(tmp_path, body, thread_id="t", before=None):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            if before is not None:
                await start(parts, "t", before)
                await parts.engine.when_idle()
            return await parts.runs.command(thread_id, body, caller=LOCAL)

    return run(scene())


@pytest.mark.parametrize(
    "body", [None, [], "x", 3, {}, {"id": "1", "method": "run.start"}, {"id": True, "method": "x"}]
)
def test_what_is_no_command_is_malformed_with_a_null_id(tmp_path, body):
    reply = command(tmp_path, body)
    assert reply.outcome is CommandOutcome.MALFORMED
    assert (reply.envelope["id"], reply.envelope["error"]) == (None, "invalid_argument")


@pytest.mark.parametrize("method", ["agent.getTree", "", None, "input.inject"])
def test_an_unknown_or_missing_method_is_unknown_and_the_id_is_echoed(tmp_path, method):
    reply = command(tmp_path, {"id": 7, "method": method})
    assert (reply.outcome, reply.envelope["id"], reply.envelope["error"]) == (
        CommandOutcome.UNKNOWN,
        7,
        "unknown_command",
    )


def test_a_bad_thread_id_is_malformed(tmp_path):
    for thread_id in ("..", "events", "a/b", "x" * 256, ""):
        reply = command(tmp_path, {"id": 1, "method": "state.get"}, thread_id=thread_id)
        assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.MALFORMED, "invalid_id")


def test_the_state_of_an_unknown_thread_is_not_found(tmp_path):
    reply = command(tmp_path, {"id": 1, "method": "state.get"})
    assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.NOT_FOUND, "no_such_thread")


def test_state_get_gives_values_and_checkpoint(tmp_path):
    reply = command(tmp_path, {"id": 1, "method": "state.get", "params": {"keys": ["messages"]}}, before="hi")
    assert reply.envelope["result"] == {"values": {"messages": [{"type": "ai", "content": "hi"}]}, "checkpoint": None}


def test_stopping_where_nothing_runs_is_done_with_an_empty_result(tmp_path):
    reply = command(tmp_path, {"id": 1, "method": "run.stop", "params": {}}, before="hi")
    assert (reply.outcome, reply.envelope["result"]) == (CommandOutcome.DONE, {})


def test_answering_what_nobody_asked_is_no_such_interrupt(tmp_path):
    reply = command(tmp_path, {"id": 1, "method": "input.respond", "params": {"interrupt_id": "i"}}, before="hi")
    assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.REFUSED, "no_such_interrupt")


def test_a_thread_of_somebody_else_is_not_found(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await start(parts, "t", "mine")
            await parts.engine.when_idle()
            for method, params in (("run.start", {"prompt": "x"}), ("state.get", {}), ("input.respond", {})):
                body = {"id": 1, "method": method, "params": params}
                reply = await parts.runs.command("t", body, caller=Caller(owner="eve"))
                assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.NOT_FOUND, "no_such_thread")

    run(scene())
