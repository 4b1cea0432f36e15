"""Takes the address: a listening socket, before anything heavy is imported."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Sequence
from typing import Any

from pizzabot_builtin_plugins.http_server.addresses import bracketed
from pizzabot_hookspecs import Conflict, InvalidRequest, NotPermitted

BACKLOG = 256
"""Connections that wait while the application is being loaded."""


async def addresses_of(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    """What a name stands for, as `getaddrinfo` says it. Raises `InvalidRequest` `unknown_host`."""
    name = host.removeprefix("[").removesuffix("]")
    loop = asyncio.get_running_loop()
    try:
        return await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise InvalidRequest("unknown_host", f"host {host!r} has no address ({error}); use --host 127.0.0.1") from error


async def listen(host: str, port: int) -> socket.socket:
    """A listening, non-blocking socket on the first address that `host` has.

    Raises `Conflict` `port_in_use`; `InvalidRequest` `unknown_host`, `address_not_available`; `NotPermitted`
    `port_not_permitted`.
    """
    found = await addresses_of(host, port)
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    sock = socket.socket(family, kind, protocol)
    with contextlib.ExitStack() as undo:
        undo.callback(sock.close)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.settimeout(0)
            sock.bind(address)
            # Two sockets may bind one port with SO_REUSEADDR; only the second listen() tells.
            sock.listen(BACKLOG)
        except OSError as error:
            raise _refusal(error, host, port) from error
        undo.pop_all()
    return sock


def _refusal(error: OSError, host: str, port: int) -> Exception:
    place = f"{bracketed(host)}:{port}"
    if error.errno == errno.EADDRINUSE:
        way_out = "stop what uses it, or choose another port with --port N (0 takes any free one)"
        return Conflict("port_in_use", f"{place} is already in use; {way_out}")
    if error.errno == errno.EACCES:
        return NotPermitted("port_not_permitted", f"{place} may not be taken by this user; choose --port 1024 or above")
    return InvalidRequest(
        "address_not_available", f"{place} cannot be taken ({error.strerror or error}); use an address of this machine"
    )
