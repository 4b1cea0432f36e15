"""What a turn streams."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import get_args

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    asked,
    conversation,
    events,
    frames_of,
    model_of,
    said,
    text_of,
    turn,
)
from pizzabot.testing.scripted_model import Reply
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.wire import FrameMethod


class StreamingContract(RuntimeContract):
    def test_frames_are_plain_json_in_the_order_of_time_and_never_root_lifecycle(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("Hello there, friend"))
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
            assert frames
            for frame in frames:
                assert json.loads(json.dumps(frame.data, allow_nan=False)) == frame.data
                assert frame.method in get_args(FrameMethod)
                assert isinstance(frame.namespace, tuple)
                assert all(isinstance(segment, str) for segment in frame.namespace)
                assert type(frame.timestamp) is int
                assert not (frame.method == "lifecycle" and not frame.namespace), "root lifecycle is the host's"
            assert all(before.timestamp <= after.timestamp for before, after in pairwise(frames))
            assert frames[0].timestamp > 1_600_000_000_000, "timestamps are milliseconds since the epoch"

        self.run(scenario())

    def test_text_deltas_concatenate_to_the_answer(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One, two and three.\n  Four."))
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("count"))))
            assert text_of(frames) == "One, two and three.\n  Four."

        self.run(scenario())

    def test_a_message_is_streamed_from_start_to_finish_with_its_run_id_in_every_event(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("Hello there"))
            async with self.runtime(self.new_storage()) as runtime:
                stream = events(await frames_of(runtime.start(turn(model, said("hi")))))
            names = [data["event"] for data in stream]
            assert names[0] == "message-start"
            assert names[-1] == "message-finish"
            assert names.count("message-start") == names.count("message-finish") == 1
            first_delta = names.index("content-block-delta")
            assert names.index("content-block-start") < first_delta < names.index("content-block-finish")
            assert {data["index"] for data in stream if "index" in data} == {0}
            assert stream[0]["id"]
            assert len({data["run_id"] for data in stream}) == 1

        self.run(scenario())

    def test_the_root_speaks_in_a_namespace_of_its_own_node(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("Hello"))
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
            (namespace,) = {frame.namespace for frame in frames if frame.method == "messages"}
            assert len(namespace) == 1
            assert namespace[0].startswith("model_request:")

        self.run(scenario())

    def test_the_last_root_values_hold_the_conversation_and_no_private_state(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("Hello"))
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
            values = [frame.data for frame in frames if frame.method == "values" and not frame.namespace]
            assert conversation(values[-1]) == [("human", "hi"), ("ai", "Hello")]
            for snapshot in values:
                assert "messages" in snapshot
                assert not [key for key in snapshot if key.startswith("_")]

        self.run(scenario())

    def test_text_of_every_script_arrives_whole(self) -> None:
        async def scenario() -> None:
            pieces = ["Grüße ", "👩‍🍳", "🍕 ", "比萨", "餅 ", "שלום"]
            question = "Что такое 比萨? 🍕"
            model, chosen = model_of(Reply(pieces=pieces))
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said(question))))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert asked(model.calls[0].messages) == [("human", question)]
            assert text_of(frames) == "".join(pieces)
            assert state is not None
            assert conversation(state["values"]) == [("human", question), ("ai", "".join(pieces))]

        self.run(scenario())

    def test_nothing_happens_until_a_run_is_iterated(self) -> None:
        async def scenario() -> None:
            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(self.new_storage()) as runtime:
                runtime.start(turn(chosen, said("hi")))
                for _ in range(50):
                    await asyncio.sleep(0)  # whatever was started behind our back gets its turn of the loop
                assert await runtime.state("thread-1", caller=LOCAL) is None
            assert not model.calls

        self.run(scenario())
