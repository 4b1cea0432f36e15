"""Whether settings fit the installed plugins: each chosen `use` exists, its section is valid, its secrets are set, and
the provider of each model can be made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pizzabot.cli.context import load_plugins, make_context, secrets_of
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


class _Placed(InvalidRequest):
    """A problem whose text says the setting and where it is written."""


def check(settings: Settings) -> tuple[list[str], list[str]]:
    """Problems, which stop a start or a model, and notes, which do not."""
    plugins = load_plugins(settings)
    try:
        secrets = secrets_of(settings, plugins)
    except PizzabotError as error:
        source = settings.provenance("secrets.use")
        # What stands there by default is not what is wrong: then it is a section of `[secrets]`, which the text names.
        return [error.detail if source == "default" else f"secrets.use ({source}): {error.detail}"], []
    checking = _Checking(settings, plugins, secrets)
    for use in _uses(settings):
        checking.use(use)
    for setting, model in _named_models(settings):
        checking.model(setting, model)
    checking.folders()
    problems = list(dict.fromkeys(checking.problems))
    return problems, [*_unused(settings, plugins), *plugins.notes()]


def _uses(settings: Settings) -> Iterator[_Use]:
    yield _Use("storage_backends", settings.storage.use, "storage", settings.storage.use, "storage.use")
    yield _Use("agent_runtimes", settings.runtime.use, "runtime", settings.runtime.use, "runtime.use")
    for name in settings.transports.use:
        yield _Use("transports", name, "transports", name, "transports.use")
    yield _Use("mcp_clients", settings.mcp.use, "mcp", settings.mcp.use, "mcp.use")
    for name in settings.agent_middleware.use:
        yield _Use("agent_middleware", name, "agent_middleware", name, "agent_middleware.use")
    for name in settings.skills.use:
        yield _Use("skill_sources", name, "skills", name, "skills.use")
    for name, offer in settings.models.uses.items():
        setting = f"models.{name}.use" if "use" in settings.models.tables[name] else f"models.{name}"
        yield _Use("model_providers", offer, "models", name, setting)


def _named_models(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.models.default is not None:
        yield "models.default", settings.models.default
    for model in settings.models.fallback:
        yield "models.fallback", model


class _Checking:
    """Collects problems, each with the setting it is about and the place where that is written."""

    def __init__(self, settings: Settings, plugins: Plugins, secrets: SecretResolver) -> None:
        self._settings = settings
        self._plugins = plugins
        self._secrets = secrets
        self.problems: list[str] = []

    def use(self, use: _Use) -> None:
        try:
            record = self._plugins.choose(use.kind, use.offer)
            section = self._section(use, record)
            if use.kind == "model_providers":
                self._provider(record, use.name, section)
        except _Placed as error:
            self.problems.append(error.detail)
        except PizzabotError as error:
            self._add(use.setting, error)

    def folders(self) -> None:
        from pizzabot.host.folders.rules import folder_rules

        try:
            folder_rules(self._settings, self._settings.data_root)
        except PizzabotError as error:
            self.problems.append(error.detail)

    def model(self, setting: str, model: str) -> None:
        """`default` and `fallback` are `<use>:<model>`; the use is a section, checked already, or a provider."""
        use, separator, name = model.partition(":")
        try:
            if not separator or not use or not name:
                raise InvalidRequest("invalid_settings", f'a model is USE:MODEL, not "{model}"')
            if use not in self._settings.models.uses:
                self._provider(self._plugins.choose("model_providers", use), use, {})
        except PizzabotError as error:
            self._add(setting, error)

    def _add(self, setting: str, error: PizzabotError) -> None:
        self.problems.append(f"{setting} ({self._settings.provenance(setting)}): {error.detail}")

    def _section(self, use: _Use, record: OfferRecord) -> dict[str, Any]:
        """The section with its secrets in place. Raises `_Placed` for one that is not set or a value that is wrong."""
        from pizzabot.kernel.creation import validate
        from pizzabot.settings import resolve_references
        from pizzabot_hookspecs.support.references import find_references

        written = self._settings.section(use.section, use.name)
        table = (use.section, use.name)
        for path, reference in find_references(written, keys=self._secrets.keys):
            try:
                self._secrets.resolve(reference)
            except PizzabotError as error:
                raise self._placed((*table, *map(str, path)), error) from error
        section = resolve_references(written, self._secrets)
        try:
            validate(record, use=use.name, section=section, redact=process_redactor())
        except InvalidRequest as error:
            explained = self._settings.explain(error, table)
            raise _Placed(explained.code, explained.detail, fields=explained.fields) from error
        return section

    def _placed(self, path: tuple[str, ...], error: PizzabotError) -> _Placed:
        from pizzabot.settings.paths import dotted

        return _Placed(error.code, f"{dotted(path)} ({self._settings.provenance(path)}): {error.detail}")

    def _provider(self, record: OfferRecord, use: str, section: dict[str, Any]) -> None:
        """Make it as the server would, without asking any endpoint: a missing package or key is found here."""
        from pizzabot_hookspecs.model_providers import NeedsConfiguration

        made = self._plugins.create(
            record,
            use=use,
            section=section,
            context=lambda name, inner: make_context(self._settings, name, inner, self._secrets),
        )
        missing = made.missing() if isinstance(made, NeedsConfiguration) else None
        if missing is not None:
            raise InvalidRequest("credentials", missing)


def _unused(settings: Settings, plugins: Plugins) -> Iterator[str]:
    """Sections for something that is neither chosen nor installed: reported, not ignored (plugins.md)."""
    kinds = {
        "storage": ("storage_backends", (settings.storage.use,)),
        "runtime": ("agent_runtimes", (settings.runtime.use,)),
        "transports": ("transports", settings.transports.use),
        "secrets": ("secret_stores", settings.secrets.use),
        "skills": ("skill_sources", settings.skills.use),
        "mcp": ("mcp_clients", (settings.mcp.use,)),
        "agent_middleware": ("agent_middleware", settings.agent_middleware.use),
        **{
            kind: (kind, ())
            for kind in (
                "admission_policies",
                "agent_tools",
                "commands",
                "http_routes",
                "materializers",
                "mcp_servers",
                "observers",
            )
        },
    }
    for section, (kind, chosen) in kinds.items():
        offered = {record.offer.name.replace("-", "_") for record in plugins.offers(kind)}
        selected = {name.rpartition(":")[2].replace("-", "_") for name in chosen}
        for name in getattr(settings.document, section).tables:
            if name.rpartition(":")[2].replace("-", "_") not in offered | selected:
                source = settings.provenance((section, name))
                yield f"[{section}.{name}] ({source}) is for something that is not installed"
