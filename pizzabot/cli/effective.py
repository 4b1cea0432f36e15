"""Every effective value: the host's own settings, and those of the plugins that are in use, with their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pizzabot.settings.settings import SettingValue
from pizzabot_hookspecs.errors import PizzabotError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pizzabot.kernel import OfferRecord, Plugins
    from pizzabot.settings import Settings

DEEPEST = 4
"""Levels of nested settings models that are walked; what lies below is shown as one value."""


def effective_values(settings: Settings) -> tuple[list[SettingValue], str]:
    """The values in the order of the sections, and why those of plugins are missing, if they are."""
    from pizzabot.cli.context import load_plugins

    values = list(settings.values())
    try:
        plugins = load_plugins(settings)
    except PizzabotError as error:
        return values, error.detail
    known = {value.path for value in values}
    for section, record in _in_use(settings, plugins):
        if record.offer.settings is not None:
            for path, default in _defaults(record.offer.settings, section):
                if not _written(path, known):
                    known.add(path)
                    values.append(SettingValue(path=path, value=default, source="default"))
    order = {name: number for number, name in enumerate(type(settings.document).model_fields)}
    return sorted(values, key=lambda value: (order[value.path[0]], value.path[1:2] if len(value.path) > 2 else ())), ""


def _in_use(settings: Settings, plugins: Plugins) -> Iterator[tuple[tuple[str, str], OfferRecord]]:
    """Each section that is handed to an offer, also one that nobody wrote."""
    chosen = [
        ("storage", "storage_backends", settings.storage.use, settings.storage.use),
        ("runtime", "agent_runtimes", settings.runtime.use, settings.runtime.use),
        *(("transports", "transports", use, use) for use in settings.transports.use),
        *(("secrets", "secret_stores", use, use) for use in settings.secrets.use),
        *(("skills", "skill_sources", use, use) for use in settings.skills.use),
        *(("agent_middleware", "agent_middleware", use, use) for use in settings.agent_middleware.use),
        *(("models", "model_providers", use, offer) for use, offer in _models(settings).items()),
    ]
    for section, kind, use, offer in chosen:
        try:
            yield (section, use.rpartition(":")[2]), plugins.choose(kind, offer)
        except PizzabotError:
            continue  # `config check` says it
    for kind in ("admission_policies", "agent_tools", "commands", "http_routes", "observers"):
        for record in plugins.acting(kind):
            yield (kind, record.offer.name), record


def _models(settings: Settings) -> dict[str, str]:
    """Sections, and the providers that a default or a fallback names without one."""
    named = [settings.models.default, *settings.models.fallback]
    bare = {use: use for model in named if model is not None and (use := model.partition(":")[0])}
    return {**bare, **settings.models.uses}


def _defaults(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        inner = field.annotation
        if isinstance(inner, type) and hasattr(inner, "model_fields") and len(path) < DEEPEST:
            yield from _defaults(inner, here)
        elif not field.is_required():
            yield here, _shown(field.get_default(call_default_factory=True))


def _shown(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str)


def _written(path: tuple[str, ...], known: set[tuple[str, ...]]) -> bool:
    """Whether the value, or one inside it or around it, is there already; names with `-` and `_` are one."""
    folded = tuple(part.replace("-", "_") for part in path)
    return any(_overlap(folded, tuple(part.replace("-", "_") for part in other)) for other in known)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    length = min(len(one), len(other))
    return length > 2 and one[:length] == other[:length]
