"""Where subagents are that code of an `eval` called, as clients see it: each at a place of its own.

LangGraph has the first of them at the namespace of the eval itself, `tools:<task>`, and the next ones at
`tools:<task>|1`, `|2`, … A client would take the second for one below the first. On the wire they are `tools:<task>:0`,
`tools:<task>:1`, … side by side, like subagents that the orchestrator calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pizzabot_hookspecs.wire import Namespace

_PLACE = re.compile(r"(tools:[^:|]+):(\d+)")


@dataclass
class DispatchedPlaces:
    """Those of one turn. `evals` are the segments of evals whose code has called somebody."""

    evals: set[str] = field(default_factory=set)
    subagents: set[Namespace] = field(default_factory=set)

    def add(self, eval_place: Namespace, index: int) -> Namespace:
        """The place of a subagent that is launched: the `index`-th of this eval."""
        self.evals.add(eval_place[0])
        place = (f"{eval_place[0]}:{index}", *eval_place[1:])
        self.subagents.add(place)
        return place

    def shown(self, namespace: Namespace) -> Namespace:
        """A graph's, a message's or a nested call's namespace as clients see it."""
        if not namespace or namespace[0] not in self.evals:
            return namespace
        if len(namespace) > 1 and namespace[1].isdecimal():
            return (f"{namespace[0]}:{namespace[1]}", *namespace[2:])
        return (f"{namespace[0]}:0", *namespace[1:])


def stored_segment(segment: str) -> str:
    """A segment as LangGraph stores it, which may be two."""
    found = _PLACE.fullmatch(segment)
    if found is None:
        return segment
    return found[1] if found[2] == "0" else f"{found[1]}|{found[2]}"
