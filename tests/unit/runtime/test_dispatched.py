"""Subagents that code calls stand side by side for clients, and are found again in the checkpoints."""

from __future__ import annotations

import pytest

from pizzabot_builtin_plugins.deepagents_runtime.dispatched import DispatchedPlaces
from pizzabot_builtin_plugins.deepagents_runtime.open_messages import checkpoint_namespace, js_namespace


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("tools:a", ("tools:a:0",)),
        ("tools:a|model:m", ("tools:a:0", "model_request:m")),
        ("tools:a|1", ("tools:a:1",)),
        ("tools:a|12|tools:b|model:m", ("tools:a:12", "tools:b", "model_request:m")),
        ("tools:other|1", ("tools:other", "1")),
        ("model:m", ("model_request:m",)),
    ],
)
def test_each_has_a_place_of_its_own_that_leads_back_to_its_checkpoints(stored: str, shown: tuple[str, ...]) -> None:
    places = DispatchedPlaces()
    assert places.add(("tools:a",), 1) == ("tools:a:1",)
    assert places.shown(js_namespace(stored)) == shown
    assert checkpoint_namespace(shown) == stored


def test_without_an_eval_that_called_somebody_nothing_is_changed() -> None:
    assert DispatchedPlaces().shown(("tools:a", "1")) == ("tools:a", "1")
    assert DispatchedPlaces().shown(()) == ()
