"""A bundle as lists show it (spec/01 §9)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from pizzabot.host.materializing.states import Materialization, MaterializationState
from pizzabot_hookspecs.bundles import Bundle, BundleStatus
from pizzabot_hookspecs.wire import JsonValue

_TOLD = ("version", "displayName", "description", "author", "homepage", "engine", "capabilities")
_ID_CHARACTERS = 16


def bundle_row(
    bundle: Bundle, materialization: Materialization | None, redact: Callable[[str], str]
) -> dict[str, JsonValue]:
    """`id, name, apiVersion, status, detail?, version?, displayName?, description?, author?, homepage?, engine?,
    capabilities?, removable, contributions, materialization?`. One whose materializer made nothing yet is failed."""
    status, detail = bundle.status, bundle.detail
    nothing = materialization is not None and materialization.state is MaterializationState.ERROR
    if status is BundleStatus.LOADED and materialization is not None and nothing:
        status, detail = BundleStatus.FAILED, materialization.detail
    row: dict[str, JsonValue] = {
        "id": bundle_id(bundle),
        "name": bundle.name,
        "apiVersion": bundle.api_version,
        "status": status.value,
    }
    if detail:
        row["detail"] = redact(detail)
    row |= {key: bundle.about[key] for key in _TOLD if key in bundle.about}
    row["removable"] = bundle.removable
    loaded = status is BundleStatus.LOADED
    row["contributions"] = {
        "skills": len(bundle.skills) if loaded else 0,
        "mcpServers": len(bundle.servers) if loaded else 0,
    }
    if materialization is not None:
        row["materialization"] = materialization.to_json()
    return row


def bundle_id(bundle: Bundle) -> str:
    """The same for the same folder."""
    digest = hashlib.sha256(str(bundle.root).encode(errors="surrogateescape")).digest()
    return "plugin_" + base64.urlsafe_b64encode(digest).decode()[:_ID_CHARACTERS]
