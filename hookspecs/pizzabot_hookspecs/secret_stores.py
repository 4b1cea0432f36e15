"""Kind `secret_stores`: where a reference finds its value. Asked in the order of `[secrets] use`; synchronous."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pizzabot_hookspecs.offers import Offer, hookspec


class SecretStore(Protocol):
    def get(self, name: str, /) -> str | None:
        """The value, or None where this store has none; never an empty string. `Unavailable` when it cannot look."""
        ...


@runtime_checkable
class WritableSecretStore(Protocol):
    """Optional: a store that keeps what it is given (`pizzabot secrets set`)."""

    def set(self, name: str, value: str, /) -> None: ...

    def delete(self, name: str, /) -> bool: ...


@hookspec
def pizzabot_secret_stores() -> list[Offer[SecretStore]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. An offer's name is the key of a reference: `{keyring = "NAME"}`."""
