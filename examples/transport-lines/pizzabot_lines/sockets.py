"""Takes the address: a Unix socket that only this user can open, or a TCP port on 127.0.0.1. Blocking and quick."""

from __future__ import annotations

import errno
import os
import socket
import struct
from pathlib import Path

from pizzabot_hookspecs import Conflict, InvalidRequest, NotPermitted

BACKLOG = 64
LOOPBACK = "127.0.0.1"


def listen_on_socket(path: Path) -> socket.socket:
    """Raises `Conflict` `socket_in_use`, `NotPermitted` `socket_not_permitted`,
    `InvalidRequest` `socket_path_too_long`.
    """
    _remove_what_a_crash_left(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(os.fspath(path))
        # Between `bind` and `listen` nobody can connect, so nobody does before the permissions are right.
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        way_out = "choose a shorter --data-root, or a TCP port with [transports.lines] port and token"
        if error.errno == errno.EADDRINUSE:
            detail = f"{path} is already there; stop the server that uses it, or remove the file"
            raise Conflict("socket_in_use", detail) from error
        if error.errno is None or error.errno == errno.ENAMETOOLONG:
            raise InvalidRequest("socket_path_too_long", f"{path}: {error}; {way_out}") from error
        raise NotPermitted("socket_not_permitted", f"{path}: {error.strerror}; {way_out}") from error
    listener.settimeout(0)
    return listener


def listen_on_port(port: int) -> socket.socket:
    """Raises `Conflict` `port_in_use`, `NotPermitted` `port_not_permitted`."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        way_out = "choose another [transports.lines] port, 0 takes any free one"
        if error.errno == errno.EADDRINUSE:
            raise Conflict("port_in_use", f"{LOOPBACK}:{port} is already in use; {way_out}") from error
        raise NotPermitted("port_not_permitted", f"{LOOPBACK}:{port}: {error.strerror}; {way_out}") from error
    listener.settimeout(0)
    return listener


def same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end of a Unix socket is this user's (or root's), where the system says so."""
    credentials = getattr(socket, "SO_PEERCRED", None)
    if connection.family != socket.AF_UNIX or credentials is None:
        return True  # elsewhere the modes of the folder and the socket have to do
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, credentials, struct.calcsize("3i")))
    return user in (os.geteuid(), 0)


def _remove_what_a_crash_left(path: Path) -> None:
    """A socket file that nobody listens on. Anything else that is there is left alone."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError:
            return
