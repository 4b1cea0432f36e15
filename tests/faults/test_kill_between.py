"""Killed between a step's last result and its checkpoint: the turn goes on to its answer."""

from __future__ import annotations

from talking import frames_of, text_of, texts
from test_kill import POST, restarted
from watching import Client, begun, caught_up, done, ending, next_message_works, play, watched


def test_killed_when_every_call_of_a_step_has_its_result_the_turn_goes_on_to_its_answer(serve, gates):
    server = serve(storage="holding")
    gates.hold("closed")

    async def scene():
        async with watched(server, "t") as (client, record):
            run_id = await begun(client, "t", POST)
            gates.reached("closed")
            restarted(server, gates)
        async with Client(server.http) as client:
            frames = await frames_of(client, "t", run_id)
            assert (ending(frames), text_of(frames)) == (("completed", None), "posted")
            assert [kind for kind, _ in texts(await client.state("t"))] == ["human", "ai", "tool", "ai"]
            assert done(server) == ["post ada"]
            await caught_up(client, record, server=server)
            await next_message_works(client, "t")

    play(scene())
