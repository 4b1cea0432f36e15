"""`host`: a whole host for a test, without discovery, on a data root of its own, closed afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pizzabot.host.app import PizzabotHost


@asynccontextmanager
async def host(
    *,
    plugins: Sequence[tuple[str, object]] = (),
    settings: Mapping[str, Any] | None = None,
    data_root: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[PizzabotHost]:
    """A real host with the built-ins and `plugins`, (name, module) pairs; no transport, no signals, no other process.

    `settings` is what `pizzabot.toml` would hold, as nested dicts; the default model is `echo:echo`. `data_root` is a
    folder to open again later; without one a temporary folder is used and removed. `environ` is the whole environment
    that settings and secrets see. Bundles of the person who runs the test are not read.
    """
    from pizzabot.host.app import open_host
    from pizzabot.host.ground import open_ground
    from pizzabot.settings import load_settings

    told = {
        "models.default": "echo:echo",
        "secrets.use": ["environment"],
        "bundles.external": [],
        **_dotted(settings or {}),
    }
    with _data_root(data_root) as root:
        loaded = load_settings(config=None, environ=environ or {}, cwd=root, overrides={**told, "data_root": str(root)})
        with open_ground(loaded, process="test", discover=False, extra=plugins, environ=environ or {}) as ground:
            async with open_host(ground) as opened:
                yield opened


@contextmanager
def _data_root(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="pizzabot-") as folder:
        yield Path(folder)


def _dotted(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            flat |= _dotted(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
