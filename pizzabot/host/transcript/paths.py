"""The path from the root of a thread to one of its turns, for which places are enough: turns need not be loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pizzabot.host.transcript.shapes import Place, State

DEFAULT_TURNS = 20
MAX_TURNS = 100


def place_of(state: State, turn_id: str | None) -> Place | None:
    """Where a turn stands, loaded or not; None for one that the state does not know."""
    if turn_id is None:
        return None
    turn = state["turns"].get(turn_id)
    return state.get("unloaded", {}).get(turn_id) if turn is None else turn


def turns_of_page(
    state: State,
    *,
    limit: int = DEFAULT_TURNS,
    before_seq: int | None = None,
    around_seq: int | None = None,
    head: str | None = None,
) -> list[str]:
    """The ids of the turns that `page` needs for the same arguments, ascending; it may show fewer of them."""
    path = Path(state, state["head"] if head is None else head)
    return [place["id"] for place in path.chosen(limit, before_seq, around_seq)]


class Path:
    """The turns from a leaf back to the root, as far as they are known; a parent that is not older ends it.

    With `namespace` only those in which something happens in that graph, and of these only loaded ones.
    """

    def __init__(self, state: State, leaf: str | None, namespace: Sequence[str] = ()) -> None:
        self._state = state
        self._leaf = leaf
        self._own = [place for place in self._walk() if self._is_in(place, list(namespace))] if namespace else None
        self.newest = next((place["id"] for place in self._back()), None)

    def chosen(self, limit: int, before_seq: int | None, around_seq: int | None) -> list[Place]:
        """At most `limit` (1 to 100), ascending: around a `seq`, or the newest, or those before a `seq`."""
        limit = min(max(limit, 1), MAX_TURNS)
        return self._before(before_seq, limit) if around_seq is None else self._around(around_seq, limit)

    def goes_on_before(self, first: str | None) -> bool:
        """Whether the path has a turn before `first`; a parent that is not known is one."""
        if first is None:
            return self._leaf is not None and place_of(self._state, self._leaf) is None
        if self._own is not None:
            return self._own[-1]["id"] != first
        place = place_of(self._state, first)
        if place is None or place["parentId"] is None:
            return False
        parent = place_of(self._state, place["parentId"])
        return parent is None or parent["seq"] < place["seq"]

    def _back(self) -> Iterator[Place]:
        return self._walk() if self._own is None else iter(self._own)

    def _walk(self) -> Iterator[Place]:
        turns, unloaded = self._state["turns"], self._state.get("unloaded", {})
        turn_id, below = self._leaf, None
        while turn_id is not None:
            place: Place | None = turns.get(turn_id) or unloaded.get(turn_id)
            if place is None or (below is not None and place["seq"] >= below):
                return
            yield place
            below, turn_id = place["seq"], place["parentId"]

    def _is_in(self, place: Place, namespace: list[str]) -> bool:
        turn = self._state["turns"].get(place["id"])
        parts = () if turn is None else (*turn["items"], *turn["open"].values())
        return any(namespace in (part["namespace"], part.get("child")) for part in parts)

    def _before(self, before_seq: int | None, limit: int) -> list[Place]:
        chosen: list[Place] = []
        for place in self._back():
            if len(chosen) == limit:
                break
            if before_seq is None or place["seq"] < before_seq:
                chosen.append(place)
        return chosen[::-1]

    def _around(self, seq: int, limit: int) -> list[Place]:
        newest_first = list(self._back())
        hit = next((at for at, place in enumerate(newest_first) if place["seq"] <= seq), len(newest_first) - 1)
        start = max(min(hit - limit // 2, len(newest_first) - limit), 0)
        return newest_first[start : start + limit][::-1]
