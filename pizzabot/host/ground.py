"""What a host stands on before any plugin's object exists: data root and lock, log, plugins, secrets.

The lock is taken before any plugin is imported, so that a second server refuses to start instead of writing to the
first one's files (architecture §7).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pizzabot.kernel import Plugins
from pizzabot.settings import Settings
from pizzabot_hookspecs import Context, Logger, Secrets
from pizzabot_hookspecs.support.redaction import Redactor


@dataclass(frozen=True, kw_only=True)
class Ground:
    """`logger` makes a logger bound to a name; `redact` hides every known secret in a text, and what looks like one;
    `conceal` the known ones alone, in what a person asked to see."""

    settings: Settings
    plugins: Plugins
    data_root: Path
    secrets: Secrets
    redact: Callable[[str], str]
    conceal: Callable[[str], str]
    logger: Callable[[str], Logger]
    clock: Callable[[], float]


@contextmanager
def open_ground(
    settings: Settings,
    *,
    process: str,
    terminal: bool = False,
    discover: bool = True,
    extra: Sequence[tuple[str, object]] = (),
    redactor: Redactor | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Ground]:
    """Open all of it and close it in reverse. `process` names the log files, `terminal` also logs to stderr,
    `redactor` learns every secret that is resolved.

    Raises `Conflict` `data_root_in_use`, `NotPermitted` `data_root_not_writable`, and what choosing a store raises.
    """
    from pizzabot.logs import configure_logging
    from pizzabot.settings.stores import open_secrets
    from pizzabot_hookspecs.support.data_root import DataRootLock, prepare_data_root

    root = settings.data_root
    known = redactor or Redactor.from_environment(environ)
    prepare_data_root(root)
    with DataRootLock(root):
        logs = configure_logging(root, level=settings.logging.level, redactor=known, process=process, terminal=terminal)
        try:
            chosen = settings.plugins
            plugins = Plugins(
                disable=chosen.disable,
                only=chosen.only,
                strict=chosen.strict,
                discover=discover and chosen.discover,
                extra=extra,
            ).load()

            def context(use: str, inner: Callable[[], Any] | None, secrets: Secrets) -> Context:
                return Context(
                    name=use,
                    data_root=root,
                    logger=logs.logger(use),
                    secrets=secrets,
                    clock=time.time,
                    redact=known.text,
                    inner=inner,
                )

            yield Ground(
                settings=settings,
                plugins=plugins,
                data_root=root,
                secrets=open_secrets(plugins, settings, redactor=known, context=context),
                redact=known.text,
                conceal=known.values,
                logger=logs.logger,
                clock=time.time,
            )
        finally:
            logs.close()
