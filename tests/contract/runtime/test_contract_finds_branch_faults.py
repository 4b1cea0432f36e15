"""The tests of branches and of compaction fail for each of these faulty variants of the built-in runtime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_hookspecs.agent_runtimes import Compaction, Turn

from .test_contract_finds_tool_faults import OverDeepAgents


class ForksNothing(DeepAgentsRuntime):
    def start(self, turn: Turn, /) -> Any:
        return super().start(replace(turn, config={}))


class GoesNowhere(DeepAgentsRuntime):
    async def go_to(self, thread_id: str, checkpoint_id: str, /, **asked: Any) -> str:
        await super().go_to(thread_id, checkpoint_id, **asked)
        return checkpoint_id


class KnowsEverything(DeepAgentsRuntime):
    async def has_checkpoint(self, thread_id: str, checkpoint_id: str, /, **asked: Any) -> bool:
        return True


class CopiesTheNewest(DeepAgentsRuntime):
    async def copy_thread(self, thread_id: str, checkpoint_id: str, target_id: str, /, **asked: Any) -> None:
        await super().copy_thread(thread_id, checkpoint_id, target_id, **asked)
        newest = await self.tip(thread_id, caller=asked["caller"])
        assert newest is not None
        await self.forget(target_id, caller=asked["caller"])
        await super().copy_thread(thread_id, newest, target_id, **asked)


class NoTip(DeepAgentsRuntime):
    async def tip(self, thread_id: str, /, **asked: Any) -> str | None:
        return None


class CompactsNothing(DeepAgentsRuntime):
    async def compact(self, thread_id: str, model: Any, /, **asked: Any) -> Compaction:
        done = await super().compact(thread_id, model, **asked)
        earlier = await self.history(thread_id, limit=3, before=None, namespace=(), caller=asked["caller"])
        reference = earlier[-1]["checkpoint"]
        assert reference is not None
        return replace(done, checkpoint_id=await self.go_to(thread_id, str(reference["checkpoint_id"]), **asked))


class AlwaysCompacts(DeepAgentsRuntime):
    async def compact(self, thread_id: str, model: Any, /, **asked: Any) -> Compaction:
        try:
            return await super().compact(thread_id, model, **asked)
        except Exception:
            return Compaction(tokens_before=1, tokens_after=1, checkpoint_id="none")


FAULTS: list[tuple[type[DeepAgentsRuntime], str]] = [
    (ForksNothing, "test_a_turn_from_where_an_earlier_one"),
    (GoesNowhere, "test_going_to_an_earlier_state"),
    (KnowsEverything, "test_which_checkpoints_there_are"),
    (CopiesTheNewest, "test_a_copied_thread_has"),
    (NoTip, "test_the_last_told_checkpoint"),
    (CompactsNothing, "test_a_compacted_thread_sends"),
    (AlwaysCompacts, "test_a_thread_with_too_little"),
]


class OverBranches(OverDeepAgents):
    keeps_history = True
    keeps_branches = True
    compacts_context = True


@pytest.mark.parametrize(("faulty", "found_by"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS])
def test_the_contract_fails_for_a_faulty_runtime(faulty: type[DeepAgentsRuntime], found_by: str) -> None:
    suite = type("Suite", (OverBranches,), {"made": faulty, "patience": 10.0})()
    (name,) = [name for name in dir(suite) if name.startswith(found_by)]
    with pytest.raises((AssertionError, TimeoutError, pytest.fail.Exception)):
        getattr(suite, name)()


def test_a_suite_that_does_not_say_that_its_runtime_keeps_branches_is_told() -> None:
    suite: Any = type("Suite", (OverDeepAgents,), {})()
    with pytest.raises(AssertionError, match="keeps_branches = True"):
        suite.test_a_runtime_says_whether_it_keeps_branches_and_compacts()
    assert suite.test_going_to_where_the_first_turn_began_is_an_empty_thread is None
