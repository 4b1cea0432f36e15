"""Offers as the kernel keeps them: collected from each hook implementation alone, checked, one record each."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pluggy

from pizzabot.kernel.admission import NAME_RULE, RESERVED, Refused, is_name
from pizzabot.kernel.discovery import HOST_DISTRIBUTION, Found
from pizzabot.kernel.reasons import describe
from pizzabot_hookspecs.kinds import KINDS, hook_name
from pizzabot_hookspecs.offers import Offer

KIND_OF_HOOK = {hook_name(kind): kind for kind in KINDS}


@dataclass(frozen=True, kw_only=True)
class OfferRecord:
    """One offer of one plugin.

    `replaces` is the built-in's offer of the same kind and name, for which this one stands in. `extra_of` is the
    distribution whose optional dependency `offer.extra` names: the plugin's own if that declares it, else the host's.
    """

    kind: str
    plugin: str
    offer: Offer[Any]
    builtin: bool = False
    replaces: OfferRecord | None = None
    extra_of: str = HOST_DISTRIBUTION

    @property
    def qualified(self) -> str:
        """`plugin:offer`, which always means this offer and no other."""
        return f"{self.plugin}:{self.offer.name}"


Problem: TypeAlias = tuple[str, BaseException | None]
"""Why one implementation counts for nothing, and the exception where it raised one."""


def collect(
    found: Found, implementations: Iterable[tuple[str, pluggy.HookImpl]]
) -> tuple[list[OfferRecord], list[Problem]]:
    """Call each implementation. One that raises, or returns what is no list of offers, fails alone."""
    records: list[OfferRecord] = []
    problems: list[Problem] = []
    for hook, implementation in implementations:
        if (kind := KIND_OF_HOOK.get(hook)) is None:
            continue  # optional: for another version of the host
        taken = {record.offer.name for record in records if record.kind == kind}
        try:
            offers = _checked(implementation.function(), taken)
        except Refused as refused:
            problems.append((f"{hook} {refused}", None))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # an error of others is data
            problems.append((f"{hook} raised {describe(error)}", error))
        else:
            records += [_record(kind, found, offer) for offer in offers]
    return records, problems


def _record(kind: str, found: Found, offer: Offer[Any]) -> OfferRecord:
    extra_of = found.distribution if offer.extra in found.provides else None
    packages = extra_of or HOST_DISTRIBUTION
    return OfferRecord(kind=kind, plugin=found.name, offer=offer, builtin=found.builtin, extra_of=packages)


def _checked(returned: object, seen: set[str]) -> Sequence[Offer[Any]]:
    if inspect.iscoroutine(returned):
        returned.close()  # else Python warns that nobody awaited it
        raise Refused("is an `async def`; hooks are synchronous, the objects have the async methods")
    if not isinstance(returned, list):
        raise Refused(f"returned {type(returned).__name__}, not a list of Offer")
    for offer in returned:
        _check(offer, seen)
        seen.add(offer.name)
    return returned


def _check(offer: object, seen: set[str]) -> None:
    if not isinstance(offer, Offer):
        raise Refused(f"returned a list with {type(offer).__name__} in it, not only Offer")
    if not is_name(offer.name):
        raise Refused(f"offers {offer.name!r}, which is not a name: {NAME_RULE}")
    if offer.name in RESERVED:
        raise Refused(f'offers "{offer.name}", which is a key of the configuration; choose another name')
    if offer.name in seen:
        raise Refused(f'offers "{offer.name}" twice')
    if not isinstance(offer.summary, str):
        raise Refused(f'offers "{offer.name}" with a summary that is no text')
    if not callable(offer.create):
        raise Refused(f'offers "{offer.name}" with a `create` that cannot be called')
    if offer.settings is not None and not hasattr(offer.settings, "model_validate"):
        raise Refused(f'offers "{offer.name}" with `settings` that are no pydantic model class')
