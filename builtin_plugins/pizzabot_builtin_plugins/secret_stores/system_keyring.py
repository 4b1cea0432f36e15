"""Secrets from the operating system's keyring, with a deadline: D-Bus may wait for a person, or for nobody at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from pizzabot_hookspecs.errors import Unavailable

SERVICE = "pizzabot"
"""The name under which the keyring's own tools show the entries: `keyring get pizzabot NAME`."""

DEADLINE_SECONDS = 5.0
"""How long a locked or silent keyring may hold up one secret."""

_WAY_OUT = "use an environment variable {env = …} or `pizzabot secrets set NAME --store file`"
T = TypeVar("T")


class KeyringStore:
    """`backend` is for tests; None asks the keyring library for the one of this system, at the first call."""

    def __init__(self, *, backend: Any = None, deadline: float = DEADLINE_SECONDS) -> None:
        self._backend = backend
        self._deadline = deadline
        self._busy = threading.Lock()

    def get(self, name: str, /) -> str | None:
        """Raises `Unavailable` `keyring_unavailable` or `keyring_timeout`."""
        value: str | None = self._within_deadline(lambda backend: backend.get_password(SERVICE, name))
        return value or None

    def set(self, name: str, value: str, /) -> None:
        self._within_deadline(lambda backend: backend.set_password(SERVICE, name, value))

    def delete(self, name: str, /) -> bool:
        def remove(backend: Any) -> bool:
            if backend.get_password(SERVICE, name) is None:
                return False
            backend.delete_password(SERVICE, name)
            return True

        return self._within_deadline(remove)

    def _within_deadline(self, use: Callable[[Any], T]) -> T:
        """Run `use` in a thread of its own. One at a time: behind a call that hangs no second one is started."""
        if not self._busy.acquire(timeout=self._deadline):
            raise _timeout(self._deadline)
        outcome: list[T] = []
        failure: list[Exception] = []

        def work() -> None:
            try:
                outcome.append(use(self._usable_backend()))
            except Exception as error:  # noqa: BLE001 - whatever a backend raises is handed over to the caller
                failure.append(error)
            finally:
                self._busy.release()

        # A daemon: a keyring that never answers must not keep the process from ending.
        thread = threading.Thread(target=work, name="keyring", daemon=True)
        thread.start()
        thread.join(self._deadline)
        if failure:
            raise _unavailable(failure[0]) from failure[0]
        if not outcome:
            raise _timeout(self._deadline)
        return outcome[0]

    def _usable_backend(self) -> Any:
        if self._backend is None:
            import keyring

            self._backend = keyring.get_keyring()
        # The "fail" backend raises at each call; "null" forgets what it is given, without a word.
        if type(self._backend).__module__.endswith((".fail", ".null")):
            raise Unavailable("keyring_unavailable", f"this system has no keyring; {_WAY_OUT}")
        return self._backend


def _timeout(seconds: float) -> Unavailable:
    return Unavailable("keyring_timeout", f"the keyring did not answer within {seconds:g} s; unlock it, or {_WAY_OUT}")


def _unavailable(error: Exception) -> Unavailable:
    if isinstance(error, Unavailable):
        return error
    cause = " ".join(str(error).split())[:200] or type(error).__name__
    return Unavailable("keyring_unavailable", f"the keyring cannot be used: {cause}; {_WAY_OUT}")
