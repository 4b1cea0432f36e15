"""Transports of a host: made, bound, served until told to stop. One that fails is reported and the rest go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pizzabot.host.app import PizzabotHost
from pizzabot_hookspecs import PizzabotError, Unavailable
from pizzabot_hookspecs.transports import Transport

STOP_SECONDS = 8.0


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A transport that holds its address."""

    name: str
    transport: Transport


async def bind_transports(host: PizzabotHost, uses: Sequence[str]) -> list[Bound]:
    """Make and bind each transport. Raises the first error when none of them could be bound."""
    logger = host.ground.logger("transports")
    bound: list[Bound] = []
    errors: list[PizzabotError] = []
    for use in uses:
        try:
            transport: Transport = await host.maker.chosen("transports", use, section_name="transports", host=True)
            await transport.bind()
        except PizzabotError as error:
            logger.error("transport.left_out", transport=use, code=error.code, detail=error.detail)
            errors.append(error)
        else:
            host.listens(use, transport.address)
            bound.append(Bound(name=use, transport=transport))
    if not bound:
        raise (
            errors[0]
            if errors
            else Unavailable("no_transport", "no transport is configured: [transports] use is empty")
        )
    return bound


async def serve_until(stop: asyncio.Event, bound: Sequence[Bound]) -> None:
    """Serve on every transport until `stop` is set or all of them have ended. Raises what ended the last one."""
    tasks = {asyncio.create_task(item.transport.serve(), name=f"transport {item.name}") for item in bound}
    stopped = asyncio.create_task(stop.wait(), name="stop requested")
    serving = set(tasks)
    try:
        while serving and not stop.is_set():
            done, _ = await asyncio.wait({*serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            serving -= done
    finally:
        for task in (*tasks, stopped):
            task.cancel()
        await asyncio.wait({*tasks, stopped}, timeout=STOP_SECONDS)
    failures = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    error = next((failure for failure in failures if failure is not None), None)
    if error is not None and not serving:
        raise error
