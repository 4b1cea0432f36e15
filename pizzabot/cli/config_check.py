"""Whether settings fit the installed plugins: each chosen `use` exists, its section is valid, its secrets are set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pizzabot.cli.context import load_plugins, secrets_of
from pizzabot.cli.redaction import process_redactor
from pizzabot_hookspecs.errors import InvalidRequest, PizzabotError

if TYPE_CHECKING:
    from pizzabot.kernel import OfferRecord, Plugins
    from pizzabot.settings import SecretResolver, Settings


@dataclass(frozen=True)
class _Use:
    """One choice of the configuration: `section` is its table (`models.work`), `offer` what it means."""

    kind: str
    offer: str
    section: str
    name: str
    setting: str


def check(settings: Settings) -> tuple[list[str], list[str]]:
    """Problems, which stop a start or a model, and notes, which do not."""
    plugins = load_plugins(settings)
    problems: list[str] = []
    try:
        secrets = secrets_of(settings, plugins)
    except PizzabotError as error:
        return [f"{error.detail} ({settings.provenance('secrets.use')})"], []
    for use in _uses(settings):
        try:
            record = plugins.choose(use.kind, use.offer)
            _check_section(settings, use, record, secrets)
        except PizzabotError as error:
            problems.append(f"{use.setting} ({settings.provenance(use.setting)}): {error.detail}")
    problems += _check_models(settings, plugins)
    return problems, [*_unused(settings, plugins), *plugins.notes()]


def _uses(settings: Settings) -> Iterator[_Use]:
    yield _Use("storage_backends", settings.storage.use, "storage", settings.storage.use, "storage.use")
    yield _Use("agent_runtimes", settings.runtime.use, "runtime", settings.runtime.use, "runtime.use")
    for name in settings.transports.use:
        yield _Use("transports", name, "transports", name, "transports.use")
    for name in settings.skills.use:
        yield _Use("skill_sources", name, "skills", name, "skills.use")
    for name, offer in settings.models.uses.items():
        setting = f"models.{name}.use" if "use" in settings.models.tables[name] else f"models.{name}"
        yield _Use("model_providers", offer, "models", name, setting)


def _check_section(settings: Settings, use: _Use, record: OfferRecord, secrets: SecretResolver) -> None:
    from pizzabot.kernel.creation import validate
    from pizzabot.settings import resolve_references

    section = resolve_references(settings.section(use.section, use.name), secrets)
    try:
        validate(record, use=use.name, section=section, redact=process_redactor())
    except InvalidRequest as error:
        raise settings.explain(error, (use.section, use.name)) from error


def _check_models(settings: Settings, plugins: Plugins) -> list[str]:
    """`default` and `fallback` are `<use>:<model>`; the use is a section or a provider."""
    problems = []
    named = [("models.default", settings.models.default)] if settings.models.default else []
    for setting, model in [*named, *(("models.fallback", model) for model in settings.models.fallback)]:
        use, separator, name = str(model).partition(":")
        try:
            if not separator or not use or not name:
                raise InvalidRequest("invalid_settings", f"a model is USE:MODEL, not {model!r}")
            if use not in settings.models.uses:
                plugins.choose("model_providers", use)
        except PizzabotError as error:
            problems.append(f"{setting} ({settings.provenance(setting)}): {error.detail}")
    return problems


def _unused(settings: Settings, plugins: Plugins) -> Iterator[str]:
    """Sections for something that is neither chosen nor installed: reported, not ignored (plugins.md)."""
    kinds = {
        "storage": ("storage_backends", (settings.storage.use,)),
        "runtime": ("agent_runtimes", (settings.runtime.use,)),
        "transports": ("transports", settings.transports.use),
        "secrets": ("secret_stores", settings.secrets.use),
        "skills": ("skill_sources", settings.skills.use),
        **{kind: (kind, ()) for kind in ("commands", "http_routes", "materializers", "mcp_servers", "observers")},
    }
    for section, (kind, chosen) in kinds.items():
        offered = {record.offer.name.replace("-", "_") for record in plugins.offers(kind)}
        selected = {name.rpartition(":")[2].replace("-", "_") for name in chosen}
        for name in getattr(settings.document, section).tables:
            if name.rpartition(":")[2].replace("-", "_") not in offered | selected:
                source = settings.provenance((section, name))
                yield f"[{section}.{name}] ({source}) is for something that is not installed"
