"""How the host's context becomes a wrapped storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Unavailable
from pizzabot_storage_audit.settings import AuditSettings
from pizzabot_storage_audit.storage import AuditedStorage
from pizzabot_storage_audit.trail import AuditTrail

if TYPE_CHECKING:
    from pizzabot_hookspecs.storage_backends import Storage

FOLDER = "audit"


def create(context: Context, settings: AuditSettings) -> Storage:
    """Raises `Unavailable` `nothing_to_wrap` when the built-in `sqlite` is switched off."""
    if context.inner is None:
        detail = 'storage-audit wraps the built-in "sqlite", which is not loaded; take it out of [plugins] disable'
        raise Unavailable("nothing_to_wrap", detail)
    trail = AuditTrail(
        context.data_root / FOLDER,
        max_bytes=settings.audit_bytes,
        max_files=settings.audit_files,
        clock=context.clock,
        logger=context.logger,
    )
    # What AuditedStorage does not define it takes from the wrapped storage, which a type checker cannot see.
    return AuditedStorage(context.inner(), trail)  # type: ignore[abstract]
