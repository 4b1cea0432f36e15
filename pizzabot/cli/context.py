"""What a command needs of the kernel and hands to plugins: loaded plugins, secret stores, a `Context`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pizzabot.cli.redaction import process_redactor
from pizzabot_hookspecs.offers import Context, Secrets

if TYPE_CHECKING:
    from pizzabot.kernel import Plugins
    from pizzabot.settings import SecretResolver, Settings


class Quiet:
    """A logger for commands, whose output is their answer: what fails is raised, not logged."""

    def debug(self, event: str, **facts: Any) -> None: ...
    def info(self, event: str, **facts: Any) -> None: ...
    def warning(self, event: str, **facts: Any) -> None: ...
    def error(self, event: str, **facts: Any) -> None: ...
    def exception(self, event: str, **facts: Any) -> None: ...


def load_plugins(settings: Settings) -> Plugins:
    """The plugins that `[plugins]` allows."""
    from pizzabot.kernel import Plugins

    section = settings.plugins
    return Plugins(disable=section.disable, only=section.only, strict=section.strict, discover=section.discover).load()


def make_context(settings: Settings, use: str, inner: Callable[[], Any] | None, secrets: Secrets) -> Context:
    return Context(
        name=use,
        data_root=settings.data_root,
        logger=Quiet(),
        secrets=secrets,
        clock=time.time,
        redact=process_redactor(),
        inner=inner,
    )


def secrets_of(settings: Settings, plugins: Plugins) -> SecretResolver:
    """The stores of `[secrets] use`, in order."""
    from pizzabot.settings.stores import open_secrets

    return open_secrets(
        plugins,
        settings,
        redactor=process_redactor(),
        context=lambda use, inner, secrets: make_context(settings, use, inner, secrets),
    )
