"""`PluginMaker`: the objects of plugins, made in worker threads, entered on the loop, closed in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pizzabot.host.ground import Ground
from pizzabot.kernel import Lifecycle, OfferRecord
from pizzabot.settings import resolve_references
from pizzabot_hookspecs import Context, InvalidRequest, PizzabotError
from pizzabot_hookspecs.host import Host


class PluginMaker:
    """Makes objects for uses and remembers to close them. `host` is set once there is one."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._logger = ground.logger("plugins")
        self.lifecycle = Lifecycle(on_error=self._stop_failed)
        self.host: Host | None = None

    async def chosen(self, kind: str, use: str, *, section_name: str, host: bool = False) -> Any:
        """The object of the offer that `use` names; raises `NoSuchOffer`, `AmbiguousOffer` or why it cannot be made."""
        record = self._ground.plugins.choose(kind, use)
        section = self._ground.settings.section(section_name, record.offer.name)
        try:
            return await self.make(record, use=use, section=section, host=host)
        except InvalidRequest as error:
            raise self._ground.settings.explain(error, f"{section_name}.{record.offer.name}") from error

    async def acting(self, kind: str, *, section_name: str) -> list[tuple[str, Any]]:
        """The objects of every offer of the kind. One that cannot be made is reported by name and left out."""
        made: list[tuple[str, Any]] = []
        for record in self._ground.plugins.acting(kind):
            section = self._ground.settings.section(section_name, record.offer.name)
            try:
                made.append(
                    (record.offer.name, await self.make(record, use=record.offer.name, section=section, host=True))
                )
            except PizzabotError as error:
                self._logger.error(
                    "plugin.left_out", kind=kind, offer=record.qualified, code=error.code, detail=error.detail
                )
        return made

    async def every(self, kind: str, *, section_name: str) -> list[tuple[str, Any]]:
        """The objects of every offer of the kind, or an error: for what must not be missing silently."""
        made: list[tuple[str, Any]] = []
        for record in self._ground.plugins.offers(kind):
            section = self._ground.settings.section(section_name, record.offer.name)
            made.append((record.qualified, await self.make(record, use=record.offer.name, section=section)))
        return made

    async def make(self, record: OfferRecord, *, use: str, section: Mapping[str, Any], host: bool = False) -> Any:
        """One object. Its section's references are resolved first: an unset secret is an error that names it."""
        resolved = await asyncio.to_thread(resolve_references, section, self._ground.secrets)

        def context(name: str, inner: Callable[[], Any] | None) -> Context:
            return Context(
                name=name,
                data_root=self._ground.data_root,
                logger=self._ground.logger(record.plugin),
                secrets=self._ground.secrets,
                clock=self._ground.clock,
                redact=self._ground.redact,
                host=self.host if host else None,
                inner=inner,
            )

        made = await asyncio.to_thread(self._ground.plugins.create, record, use=use, section=resolved, context=context)
        return await self.lifecycle.enter(record.qualified, made)

    def _stop_failed(self, name: str, error: BaseException) -> None:
        self._logger.error("plugin.stop_failed", name=name, cause=type(error).__name__, detail=str(error))
