"""The secret stores that `[secrets] use` names, made by the kernel and put into one resolver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from pizzabot.settings.secrets import SecretResolver
from pizzabot.settings.settings import Settings
from pizzabot_hookspecs.errors import Unavailable
from pizzabot_hookspecs.offers import Context
from pizzabot_hookspecs.secret_stores import SecretStore
from pizzabot_hookspecs.support.redaction import Redactor

if TYPE_CHECKING:
    from pizzabot.kernel import Plugins

MakeContext = Callable[[str, Callable[[], Any] | None, SecretResolver], Context]
"""`(use, inner, secrets)` -> the store's `Context`."""


class BrokenStore:
    """Stands for a store that could not be made: the others still work, and asking this one says why."""

    def __init__(self, error: Unavailable) -> None:
        self._error = error

    def get(self, name: str, /) -> str | None:  # noqa: ARG002
        raise Unavailable(self._error.code, self._error.detail) from self._error


def open_secrets(plugins: Plugins, settings: Settings, *, redactor: Redactor, context: MakeContext) -> SecretResolver:
    """Blocking. Raises `InvalidRequest` for a store that cannot be chosen or whose section is wrong."""
    resolver = SecretResolver(redactor)
    for use in settings.secrets.use:
        resolver.add_store(use, open_store(plugins, settings, use, resolver=resolver, context=context))
    return resolver


def open_store(
    plugins: Plugins, settings: Settings, use: str, *, resolver: SecretResolver, context: MakeContext
) -> SecretStore:
    """One store. What fails in its `create` is kept and raised when it is asked."""
    record = plugins.choose("secret_stores", use)
    try:
        made = plugins.create(
            record,
            use=use,
            section=settings.section("secrets", use),
            context=lambda name, inner: context(name, inner, resolver),
        )
    except Unavailable as error:
        return BrokenStore(error)
    return cast("SecretStore", made)
