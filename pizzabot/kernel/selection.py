"""Choose among offers by name, never by order: who stands in for whom, which act, and what to say when none can.

A third party's offer with the name of a built-in's offer of the same kind stands in for it; the built-in stays
reachable as `plugin:offer`. Two third parties with one name: neither is reached by it, nor is the built-in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pizzabot.kernel.errors import AmbiguousOffer, NoSuchOffer
from pizzabot.kernel.offers import OfferRecord
from pizzabot.kernel.reports import PluginReport, PluginState
from pizzabot_hookspecs.kinds import KINDS


class Selection:
    """The loaded offers of every kind. Made once, after loading; it does not change."""

    def __init__(self, records: Iterable[OfferRecord], reports: Sequence[PluginReport]) -> None:
        ordered = sorted(records, key=lambda record: (record.offer.name, record.plugin))
        builtins = {(record.kind, record.offer.name): record for record in reversed(ordered) if record.builtin}
        self._records = [
            record if record.builtin else replace(record, replaces=builtins.get((record.kind, record.offer.name)))
            for record in ordered
        ]
        self._reports = reports

    def offers(self, kind: str) -> list[OfferRecord]:
        """Every offer of the kind, sorted by (name, plugin)."""
        if kind not in KINDS:
            raise ValueError(f"no kind of plugin is called {kind!r}; there are {', '.join(KINDS)}")
        return [record for record in self._records if record.kind == kind]

    def acting(self, kind: str) -> list[OfferRecord]:
        """One offer per name: the stand-in before the built-in, none where several third parties have the name."""
        return [candidates[0] for candidates in self._by_name(kind).values() if len(candidates) == 1]

    def choose(self, kind: str, use: str) -> OfferRecord:
        """The offer that `name` or `plugin:name` means. Raises `NoSuchOffer` or `AmbiguousOffer`."""
        plugin, separator, name = use.partition(":")
        if separator:
            for record in self.offers(kind):
                if (record.plugin, record.offer.name) == (plugin, name):
                    return record
            raise NoSuchOffer(self._missing(kind, use, plugin))
        candidates = self._by_name(kind).get(use, [])
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise AmbiguousOffer(self._ambiguous(kind, use, candidates))
        raise NoSuchOffer(self._missing(kind, use, use))

    def quarrels(self) -> list[str]:
        """One line per bare name that nobody can be reached by, for the notes of the report."""
        return [
            self._ambiguous(kind, name, candidates)
            for kind in KINDS
            for name, candidates in self._by_name(kind).items()
            if len(candidates) > 1
        ]

    def stands_in_for(self, plugin: str) -> list[str]:
        return [
            record.replaces.qualified
            for kind in KINDS
            for record in self.acting(kind)
            if record.plugin == plugin and record.replaces is not None
        ]

    def _by_name(self, kind: str) -> dict[str, list[OfferRecord]]:
        """Candidates for each bare name: third parties where there are any, else built-ins."""
        grouped: dict[str, list[OfferRecord]] = {}
        for record in self.offers(kind):
            grouped.setdefault(record.offer.name, []).append(record)
        return {name: [r for r in group if not r.builtin] or group for name, group in grouped.items()}

    def _ambiguous(self, kind: str, name: str, candidates: Sequence[OfferRecord]) -> str:
        everyone = [record for record in self.offers(kind) if record.offer.name == name]
        written = " or ".join(f'"{record.qualified}"' for record in everyone)
        return f'{len(candidates)} plugins offer "{name}" of kind {kind}, so none is chosen: write {written}'

    def _missing(self, kind: str, use: str, plugin: str) -> str:
        text = f'no offer "{use}" of kind {kind}'
        culprit = next((report for report in self._reports if report.name == plugin and report.reason), None)
        if culprit is not None:
            text += f': the plugin "{plugin}" is {_why(culprit)}'
        from difflib import get_close_matches

        names = sorted({record.offer.name for record in self.offers(kind)})
        qualified = [record.qualified for record in self.offers(kind)]
        if near := get_close_matches(use, names + qualified, n=1):
            text += f'; did you mean "{near[0]}"?'
        text += f"; there are: {', '.join(qualified) or 'none'}"
        others = [r for r in self._reports if r.reason and r is not culprit and r.state is not PluginState.LOADED]
        if others:
            text += f"; not loaded: {'; '.join(f'{report.name} {_why(report)}' for report in others)}"
        return text


def _why(report: PluginReport) -> str:
    return f"{report.state.value} ({report.reason})"
