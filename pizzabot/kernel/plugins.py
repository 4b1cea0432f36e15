"""`Plugins`: the loaded plugins of one host. Find, check, load; then report, choose and create."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from pizzabot.kernel.admission import Admission
from pizzabot.kernel.builtins import BUILTINS
from pizzabot.kernel.creation import MakeContext, create
from pizzabot.kernel.discovery import SWITCH, find, switched_off
from pizzabot.kernel.errors import BrokenPlugin
from pizzabot.kernel.loading import Outcome, load_plugin, new_manager
from pizzabot.kernel.offers import OfferRecord
from pizzabot.kernel.reports import PluginReport
from pizzabot.kernel.selection import Selection
from pizzabot_hookspecs.wire import JsonValue


@dataclass(kw_only=True, eq=False)
class Plugins:
    """Belongs to one host; there is no global one.

    `builtins`  plugin name -> module
    `disable`   names that are not imported, built-ins too
    `only`      the third parties that may be imported; None means all
    `strict`    raise `BrokenPlugin` for the first plugin that is failed or incompatible
    `discover`  whether to look for installed third parties; `PIZZABOT_NO_PLUGINS=1` says no, too
    `extra`     (name, module or object) pairs that are treated as third parties without being looked for
    """

    builtins: Mapping[str, str] = field(default_factory=BUILTINS.copy)
    disable: Collection[str] = ()
    only: Collection[str] | None = None
    strict: bool = False
    discover: bool = True
    extra: Sequence[tuple[str, object]] = ()
    _notes: list[str] = field(default_factory=list, init=False, repr=False)
    _outcomes: list[Outcome] = field(default_factory=list, init=False, repr=False)
    _selection: Selection = field(default_factory=lambda: Selection((), ()), init=False, repr=False)

    def load(self) -> Self:
        """Load everything, once: a second call changes nothing. Raises `BrokenPlugin` if `strict`, else nothing."""
        if self._outcomes:
            return self
        self._notes.clear()
        installed = self.discover and not switched_off()
        if self.discover and not installed:
            self._notes.append(f"installed plugins are not looked for: {SWITCH} is set")
        found = find(self.builtins, self.extra, installed=installed, notes=self._notes)
        admission = Admission(found, disable=self.disable, only=self.only)
        manager = new_manager()
        for plugin in found:
            outcome = load_plugin(manager, plugin, admission)
            if self.strict and outcome.report.state.broken:
                detail = f'plugin "{plugin.name}" is {outcome.report.state.value}: {outcome.report.reason}'
                raise BrokenPlugin(f"{detail}; [plugins] strict is on") from outcome.error
            self._outcomes.append(outcome)
        records = [record for outcome in self._outcomes for record in outcome.records]
        self._selection = Selection(records, [outcome.report for outcome in self._outcomes])
        if installed:  # without looking, a name that is not known says nothing
            self._notes += admission.unknown_names()
        self._notes += self._selection.quarrels()
        return self

    def report(self) -> list[PluginReport]:
        """Every plugin that was found: built-ins in the order of their table, then third parties by name."""
        return [
            replace(outcome.report, stands_in_for=self._selection.stands_in_for(outcome.report.name))
            if outcome.records
            else outcome.report
            for outcome in self._outcomes
        ]

    def notes(self) -> list[str]:
        """What is not about one plugin: damaged metadata, names in the configuration that nothing has, quarrels."""
        return list(self._notes)

    def to_json(self) -> dict[str, JsonValue]:
        """`pizzabot plugins --json` and `GET /plugins`."""
        return {"plugins": [report.to_json() for report in self.report()], "notes": [*self._notes]}

    def error_of(self, plugin: str) -> BaseException | None:
        """The exception behind a plugin's reason, with its traceback, for whoever writes that plugin."""
        return next((outcome.error for outcome in self._outcomes if outcome.report.name == plugin), None)

    def offers(self, kind: str) -> list[OfferRecord]:
        """Every offer of the kind, sorted by (name, plugin)."""
        return self._selection.offers(kind)

    def acting(self, kind: str) -> list[OfferRecord]:
        """For kinds of which all act: one per name, those left out whose name several third parties have."""
        return self._selection.acting(kind)

    def choose(self, kind: str, use: str) -> OfferRecord:
        """The offer that `name` or `plugin:name` means. Raises `NoSuchOffer` or `AmbiguousOffer`."""
        return self._selection.choose(kind, use)

    def create(self, record: OfferRecord, *, use: str, section: Mapping[str, object], context: MakeContext) -> object:
        """What the offer makes for `use` (see `pizzabot.kernel.creation`). Blocking: call it in a worker thread.

        `context(use, inner)` builds the plugin's `Context`; `inner` makes the offer that this one stands in for, with
        the keys of `section` that the other one knows, or is None.
        """
        return create(record, use=use, section=section, context=context)
