"""The tests of the history fail for each of these faulty variants of the built-in runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_hookspecs import InvalidRequest, NotFound
from pizzabot_hookspecs.wire import ThreadState

from .test_contract_finds_tool_faults import OverDeepAgents


class OldestFirst(DeepAgentsRuntime):
    async def history(self, thread_id: str, /, **asked: Any) -> Sequence[ThreadState]:
        return list(reversed(await super().history(thread_id, **asked)))


class BeforeIsInclusive(DeepAgentsRuntime):
    async def history(self, thread_id: str, /, **asked: Any) -> Sequence[ThreadState]:
        states = await super().history(thread_id, **asked)
        if asked["before"] is None:
            return states
        state = await super().state(thread_id, caller=asked["caller"], checkpoint_id=asked["before"])
        assert state is not None
        return [state, *states][: asked["limit"]]


class NoLimit(DeepAgentsRuntime):
    async def history(self, thread_id: str, /, **asked: Any) -> Sequence[ThreadState]:
        return await super().history(thread_id, **{**asked, "limit": 1000})


class EveryNamespaceIsTheRoot(DeepAgentsRuntime):
    async def history(self, thread_id: str, /, **asked: Any) -> Sequence[ThreadState]:
        return await super().history(thread_id, **{**asked, "namespace": ()})


class NothingBeforeTheUnknown(DeepAgentsRuntime):
    async def history(self, thread_id: str, /, **asked: Any) -> Sequence[ThreadState]:
        try:
            return await super().history(thread_id, **asked)
        except NotFound:
            return []


class EveryEntryIsTheNewest(DeepAgentsRuntime):
    async def history(self, thread_id: str, /, **asked: Any) -> Sequence[ThreadState]:
        states = await super().history(thread_id, **asked)
        return [{**state, "values": states[0]["values"]} for state in states]


class NoParents(DeepAgentsRuntime):
    async def history(self, thread_id: str, /, **asked: Any) -> Sequence[ThreadState]:
        return [{**state, "parent_checkpoint": None} for state in await super().history(thread_id, **asked)]


class WritesOnTheNewest(DeepAgentsRuntime):
    async def update_state(self, thread_id: str, values: Mapping[str, Any], /, **asked: Any) -> ThreadState:
        return await super().update_state(thread_id, values, **{**asked, "checkpoint_id": None})


class WritesNothing(DeepAgentsRuntime):
    async def update_state(self, thread_id: str, values: Mapping[str, Any], /, **asked: Any) -> ThreadState:
        return await super().update_state(thread_id, {}, **asked)


class WritesWhatItCan(DeepAgentsRuntime):
    async def update_state(self, thread_id: str, values: Mapping[str, Any], /, **asked: Any) -> ThreadState:
        try:
            return await super().update_state(thread_id, values, **asked)
        except InvalidRequest:
            await super().update_state(thread_id, {}, **asked)
            raise


class AnyNodeWillDo(DeepAgentsRuntime):
    async def update_state(self, thread_id: str, values: Mapping[str, Any], /, **asked: Any) -> ThreadState:
        return await super().update_state(thread_id, values, **{**asked, "as_node": None})


FAULTS: list[tuple[type[DeepAgentsRuntime], str, dict[str, Any]]] = [
    (OldestFirst, "test_the_history_is_every_state", {}),
    (BeforeIsInclusive, "test_the_history_is_read_in_pages", {}),
    (NoLimit, "test_the_history_is_read_in_pages", {}),
    (EveryNamespaceIsTheRoot, "test_a_thread_and_a_namespace", {}),
    (NothingBeforeTheUnknown, "test_a_history_before_an_unknown", {}),
    (EveryEntryIsTheNewest, "test_every_entry_is_what", {}),
    (NoParents, "test_the_history_is_every_state", {}),
    (WritesOnTheNewest, "test_values_written_on_an_earlier", {}),
    (WritesNothing, "test_written_values_are", {}),
    (WritesWhatItCan, "test_values_that_cannot_be_written", {"values": {"nope": 1}, "field": "nope"}),
    (AnyNodeWillDo, "test_an_unknown_node", {}),
]


class OverHistory(OverDeepAgents):
    keeps_history = True


@pytest.mark.parametrize(("faulty", "found_by", "given"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS])
def test_the_contract_fails_for_a_faulty_runtime(
    faulty: type[DeepAgentsRuntime], found_by: str, given: dict[str, Any]
) -> None:
    suite = type("Suite", (OverHistory,), {"made": faulty, "patience": 5.0})()
    (name,) = [name for name in dir(suite) if name.startswith(found_by)]
    with pytest.raises((AssertionError, TimeoutError, pytest.fail.Exception)):
        getattr(suite, name)(**given)


def test_a_suite_that_does_not_say_that_its_runtime_keeps_history_is_told() -> None:
    suite: Any = type("Suite", (OverDeepAgents,), {})()
    with pytest.raises(AssertionError, match="keeps_history = True"):
        suite.test_a_runtime_says_whether_it_keeps_history()
    assert suite.test_written_values_are_the_new_state_and_the_next_turn_sees_them is None
