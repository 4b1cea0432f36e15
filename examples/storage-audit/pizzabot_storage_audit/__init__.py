"""A storage backend that stands in for the built-in `sqlite`: same name, same files, and an audit trail beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.storage_backends import Storage


@hookimpl
def pizzabot_storage_backends() -> list[Offer[Storage]]:
    from pizzabot_storage_audit.making import create
    from pizzabot_storage_audit.settings import AuditSettings

    # The name of the built-in's offer: whoever uses `sqlite`, as everybody does by default, gets this one instead.
    return [Offer(name="sqlite", summary="SQLite files, and an audit trail", create=create, settings=AuditSettings)]
