"""What a plugin offers and what it is handed: `Offer`, `Context`, and the `hookimpl` marker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import pluggy

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pizzabot_hookspecs.host import Host

PROJECT = "pizzabot"
"""The name of the pluggy project and of the entry-point group that third parties use."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as an implementation of a hook: `@hookimpl` above `def pizzabot_model_providers(): …`."""

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class Offer(Generic[T_co]):
    """One choice of a kind: a name to select it by, and how to make it.

    `create(context, settings)` is called once per use, on first need, in a worker thread: import what is heavy inside
    it. `settings` is the validated instance of the model below, or the plain section as a dict where there is none.
    What it returns may be an async context manager; the host enters it on its loop and closes it in reverse order.
    `extra` names the optional dependency (`pip install "pizzabot-host[extra]"`) that is said when `create` raises
    ImportError.
    """

    name: str
    summary: str
    create: Callable[[Context, Any], T_co]
    settings: type[BaseModel] | None = None
    extra: str | None = None


class Logger(Protocol):
    """A structured logger: the first argument is an event name (`run.started`), keywords are its facts."""

    def debug(self, event: str, **facts: Any) -> Any: ...
    def info(self, event: str, **facts: Any) -> Any: ...
    def warning(self, event: str, **facts: Any) -> Any: ...
    def error(self, event: str, **facts: Any) -> Any: ...
    def exception(self, event: str, **facts: Any) -> Any: ...


class Secrets(Protocol):
    """Resolves references to secrets. A value that passes here is redacted from logs and errors from then on."""

    def resolve(self, reference: object, /) -> str:
        """The value behind `{"env"|"keyring"|"file": "NAME"}` or `"${NAME}"`.

        Raises `InvalidRequest` `unset_secret`, naming the reference, when no store has it; never an empty string.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a plugin may know of its host.

    `name`       the use: the section of the configuration this object is made for
    `data_root`  the folder of this installation, mode 0700; a plugin keeps its files in `data_root / <its own name>`
    `logger`     bound to the plugin's name
    `secrets`    resolves references in settings that the host could not see
    `clock`      seconds since the epoch; use it instead of `time.time`, tests move it
    `redact`     replaces every known secret in a text
    `host`       for transports, http routes and observers: the host's use cases; None for other kinds
    `inner`      for an offer that stands in for another one of the same name: makes the one it replaces
    """

    name: str
    data_root: Path
    logger: Logger
    secrets: Secrets
    clock: Callable[[], float]
    redact: Callable[[str], str]
    host: Host | None = None
    inner: Callable[[], Any] | None = None
