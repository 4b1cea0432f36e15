"""Declarative bundles for `pizzabot plugins`: read from their folders as a server would, with nothing run for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pizzabot.cli.context import make_context
from pizzabot.cli.redaction import process_redactor
from pizzabot_hookspecs.errors import PizzabotError

if TYPE_CHECKING:
    from pizzabot.host.materializing.states import Materialization, Snapshot
    from pizzabot.kernel import Plugins
    from pizzabot.settings import Settings
    from pizzabot_hookspecs.bundles import Bundle, LoadsBundles
    from pizzabot_hookspecs.wire import JsonValue

KIND = "skill_sources"
BUNDLES = "bundles"
READ_SECONDS = 30.0
"""For all folders; a network drive that is away must not hold up the list."""


def bundle_rows(settings: Settings, plugins: Plugins) -> tuple[list[dict[str, JsonValue]], str]:
    """The rows of spec/01 §9 by name, and why there are none where they cannot be read."""
    try:
        return asyncio.run(_rows(settings, plugins)), ""
    except PizzabotError as error:
        return [], f"bundles cannot be read: {error.detail}"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the list runs with everything broken
        return [], f"bundles cannot be read: {type(error).__name__}: {error}"


async def _rows(settings: Settings, plugins: Plugins) -> list[dict[str, JsonValue]]:
    from pizzabot import __version__
    from pizzabot.host.bundles.places import places_of
    from pizzabot.host.bundles.rows import bundle_row
    from pizzabot.host.materializing.snapshots import FOLDER, Snapshots
    from pizzabot_hookspecs.bundles import LoadRequest

    source = _source(settings, plugins)
    if source is None:
        return []
    snapshots = Snapshots(settings.data_root / FOLDER).every()
    request = LoadRequest(
        places=places_of(settings, _brought(plugins)),
        generated={name: snapshot.folder for name, snapshot in snapshots.items()},
        host_version=__version__,
    )
    async with asyncio.timeout(READ_SECONDS):
        bundles = await source.load(request)
    return [
        bundle_row(bundle, _materialization(bundle, snapshots), process_redactor())
        for bundle in sorted(bundles, key=lambda bundle: (bundle.name, str(bundle.root)))
    ]


def _source(settings: Settings, plugins: Plugins) -> LoadsBundles | None:
    from pizzabot.cli.context import secrets_of
    from pizzabot_hookspecs.bundles import LoadsBundles

    record = next((record for record in plugins.acting(KIND) if record.offer.name == BUNDLES), None)
    if record is None:
        return None
    secrets = secrets_of(settings, plugins)
    made: Any = plugins.create(
        record,
        use=BUNDLES,
        section=settings.section(KIND, BUNDLES),
        context=lambda use, inner: make_context(settings, use, inner, secrets),
    )
    return made if isinstance(made, LoadsBundles) else None


def _brought(plugins: Plugins) -> list[Path]:
    """Those of `bundle_offer`: nothing is created to find them."""
    found = (getattr(record.offer.create, "bundle", None) for record in plugins.acting(KIND))
    return [folder for folder in found if isinstance(folder, Path)]


def _materialization(bundle: Bundle, snapshots: dict[str, Snapshot]) -> Materialization | None:
    """As the disk tells it: whether the last run failed is known to the server alone."""
    from pizzabot.host.materializing.states import Materialization, MaterializationState

    last = snapshots.get(bundle.name)
    if bundle.materializer is None or last is None:
        return None
    return Materialization(state=MaterializationState.SYNCED, snapshot=last)
