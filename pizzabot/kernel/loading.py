"""Import one plugin, register it, check that this host has the hooks and arguments it uses, and collect its offers.

Every phase raises `Refused` or whatever the plugin raises; `load_plugin` turns both into an outcome. Nothing of a
plugin that failed to register stays in the manager.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from time import perf_counter
from types import ModuleType

import pluggy

from pizzabot import __version__
from pizzabot.kernel.admission import Admission, Refused
from pizzabot.kernel.discovery import Found
from pizzabot.kernel.offers import KIND_OF_HOOK, OfferRecord, Problem, collect
from pizzabot.kernel.reasons import describe, one_line
from pizzabot.kernel.reports import PluginReport, PluginState
from pizzabot_hookspecs.kinds import KINDS
from pizzabot_hookspecs.offers import PROJECT


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a plugin. `error` is the exception behind the reason, with its traceback, where there is one."""

    report: PluginReport
    records: Sequence[OfferRecord] = ()
    error: BaseException | None = None


def new_manager() -> pluggy.PluginManager:
    """A manager that knows every kind's hook. One per `Plugins`: a global one leaks between tests (datasette#2595)."""
    manager = pluggy.PluginManager(PROJECT)
    for kind in KINDS:
        manager.add_hookspecs(importlib.import_module(f"pizzabot_hookspecs.{kind}"))
    return manager


def load_plugin(manager: pluggy.PluginManager, found: Found, admission: Admission) -> Outcome:
    """Never raises for what a plugin does, except for KeyboardInterrupt and its kind."""
    started: float | None = None
    records: list[OfferRecord] = []
    problems: list[Problem] = []
    try:
        admission.admit(found)
        started = perf_counter()
        implementations = _register(manager, found.name, _import(found))
        records, problems = collect(found, implementations)
        state = PluginState.FAILED if problems else PluginState.LOADED
        if not implementations:  # an author's mistake, and harmless
            problems = [("it implements no hook", None)]
    except Refused as refused:
        state, problems = refused.state, [(str(refused), None)]
    except (Exception, SystemExit) as raised:  # noqa: BLE001  # an error of others is data
        state, problems = PluginState.FAILED, [(describe(raised), raised)]
    error = next((raised for _, raised in problems if raised is not None), None)
    kinds = sorted({record.kind for record in records})
    report = PluginReport(
        name=found.name,
        state=state,
        module=found.value,
        builtin=found.builtin,
        distribution=found.distribution,
        version=found.version,
        ms=0.0 if started is None else (perf_counter() - started) * 1000,
        offers={kind: sorted(record.offer.name for record in records if record.kind == kind) for kind in kinds},
        reason=one_line("; ".join(text for text, _ in problems)) or None,
        exception=type(error).__name__ if error else None,
    )
    return Outcome(report=report, records=records, error=error)


def _import(found: Found) -> object:
    if found.instance is not None:
        return found.instance
    match = EntryPoint.pattern.match(found.value)
    if match is None:
        raise Refused(f"the entry point {found.value!r} does not name a module")
    module = match.group("module")
    if match.group("attr"):
        raise Refused(f"the entry point {found.value!r} names a thing in a module; it has to name a module: {module!r}")
    return importlib.import_module(module)


def _register(manager: pluggy.PluginManager, name: str, plugin: object) -> list[tuple[str, pluggy.HookImpl]]:
    """(hook, implementation) of all that is marked `@hookimpl` in the plugin, in alphabetical order."""
    implementations = []
    for attribute in dir(plugin):
        if (options := manager.parse_hookimpl_opts(plugin, attribute)) is not None:
            implementation = pluggy.HookImpl(plugin, name, getattr(plugin, attribute), options)
            implementations.append((options.get("specname") or attribute, implementation))
    for hook, implementation in implementations:
        _check_hook(manager, hook, implementation)
    _check_unmarked(plugin, {hook for hook, _ in implementations})
    if (other := manager.get_name(plugin)) is not None:
        raise Refused(f'it is the same module as the plugin "{other}", which is loaded already')
    try:
        manager.register(plugin, name=name)
    except BaseException:
        # pluggy's register is not atomic: what it added before the error would be called.
        if manager.is_registered(plugin):
            manager.unregister(plugin)
        raise
    return implementations


def _check_hook(manager: pluggy.PluginManager, hook: str, implementation: pluggy.HookImpl) -> None:
    caller = getattr(manager.hook, hook, None)
    if caller is None or caller.spec is None:
        if implementation.optionalhook:
            return
        reason = f"implements {hook}, and pizzabot-host {__version__} has only {', '.join(sorted(KIND_OF_HOOK))}"
        raise Refused(reason, PluginState.INCOMPATIBLE)
    if implementation.wrapper or implementation.hookwrapper:
        raise Refused(f"{hook} is a hook wrapper; a plugin answers for itself only")
    if unknown := set(implementation.argnames) - set(caller.spec.argnames) - set(caller.spec.kwargnames):
        reason = f"{hook} asks for {', '.join(sorted(unknown))}, which pizzabot-host {__version__} does not hand to it"
        raise Refused(reason, PluginState.INCOMPATIBLE)


def _check_unmarked(plugin: object, marked: set[str]) -> None:
    """A hook that somebody forgot to mark would offer nothing, silently."""
    for hook in sorted(set(KIND_OF_HOOK) - marked) if isinstance(plugin, ModuleType) else ():
        function = vars(plugin).get(hook)
        if inspect.isfunction(function) and function.__module__ == vars(plugin).get("__name__"):
            raise Refused(f"{hook} is not marked; write @hookimpl above it")
