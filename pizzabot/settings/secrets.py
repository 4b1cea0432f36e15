"""`SecretResolver`: references become values, by asking secret stores; what it hands out is redacted from then on."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

from pizzabot_hookspecs.errors import InvalidRequest, PizzabotError
from pizzabot_hookspecs.offers import Secrets
from pizzabot_hookspecs.secret_stores import SecretStore
from pizzabot_hookspecs.support.redaction import Redactor
from pizzabot_hookspecs.support.references import REFERENCE_KEYS, Reference, parse_reference, replace_references

STORE_OF_KEY = {"env": "environment"}
"""`{env = "NAME"}` asks the store `environment`; every other key is the name of its store."""


class SecretResolver:
    """The contract's `Secrets` on a list of stores. `{keyring = "NAME"}` asks that one only, `${NAME}` all in order.

    Nothing is kept: a secret that is changed in its store is the new one at the next call. Blocking, from any thread.
    """

    def __init__(self, redactor: Redactor, stores: Mapping[str, SecretStore] | None = None) -> None:
        self._redactor = redactor
        self._stores: dict[str, SecretStore] = dict(stores or {})
        self._lock = threading.Lock()

    def add_store(self, name: str, store: SecretStore) -> None:
        """Ask `store` after those that were added before. `name` is its use in `[secrets]`."""
        with self._lock:
            self._stores = {**self._stores, name.rpartition(":")[2]: store}

    @property
    def keys(self) -> frozenset[str]:
        """What makes a table of one key a reference."""
        return REFERENCE_KEYS | self._stores.keys()

    def resolve(self, reference: object, /) -> str:
        """The value. Raises `InvalidRequest` `unset_secret` or `invalid_reference`, or what the store raises."""
        parsed = reference if isinstance(reference, Reference) else parse_reference(reference, keys=self.keys)
        if parsed is None:
            raise InvalidRequest(
                "invalid_reference",
                'not a secret reference: write {env = "NAME"}, {keyring = …}, {file = …} or ${NAME}',
            )
        value, store = self._ask_one(parsed, parsed.key) if parsed.key is not None else self._ask_all(parsed)
        if not _is_of_every_process(store, parsed.name):
            self._redactor.add(value)
        return value

    def _ask_one(self, reference: Reference, key: str) -> tuple[str, str]:
        """The value and the store that has it."""
        name = STORE_OF_KEY.get(key, key)
        store = self._stores.get(name)
        if store is None:
            active = ", ".join(self._stores) or "none"
            raise InvalidRequest(
                "unset_secret",
                f'secret {reference} cannot be looked up: the store "{name}" is not in [secrets] use, only {active}',
            )
        value = store.get(reference.name)
        if not value:
            raise InvalidRequest("unset_secret", f"secret {reference} is not set: {_way_out(name, reference.name)}")
        return value, name

    def _ask_all(self, reference: Reference) -> tuple[str, str]:
        blind: list[str] = []
        for name, store in self._stores.items():
            try:
                value = store.get(reference.name)
            except PizzabotError as error:  # a machine without a keyring must not hide what the file has
                blind.append(f"{name}: {error.detail}")
                continue
            if value:
                return value, name
        could_not = f" ({'; '.join(blind)})" if blind else ""
        raise InvalidRequest(
            "unset_secret",
            f"secret {reference} is not set in {', '.join(self._stores) or 'any store'}:"
            f" set the variable {reference.name} or run `pizzabot secrets set {reference.name}`{could_not}",
        )


def _is_of_every_process(store: str, name: str) -> bool:
    """Whether it is a variable that every child has: no secret. Hiding one would ruin each path of a home folder."""
    from pizzabot_hookspecs.support.processes import INHERITED

    return store == STORE_OF_KEY["env"] and name in INHERITED


def _way_out(store: str, name: str) -> str:
    if store == "environment":
        return f"set the environment variable {name}"
    if store in {"keyring", "file"}:
        return f"run `pizzabot secrets set {name} --store {store}`"
    return f'the store "{store}" has no such name'


def resolve_references(
    section: Mapping[str, Any], secrets: Secrets, *, keys: Collection[str] | None = None
) -> dict[str, Any]:
    """A copy of `section` with values in place of references. Blocking: a keyring may take seconds.

    `keys` default to those that `secrets` knows. Raises what `Secrets.resolve` raises.
    """
    known = keys if keys is not None else getattr(secrets, "keys", REFERENCE_KEYS)
    return replace_references(section, secrets.resolve, keys=known)
