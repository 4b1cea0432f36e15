"""A server behind its proxy, with the gates at which its tools can be held; what happens to it in a test."""

from __future__ import annotations

from dataclasses import dataclass

from gates import Gates
from proxy import Proxy
from servers import Server


@dataclass(frozen=True)
class Place:
    server: Server
    proxy: Proxy
    gates: Gates

    @property
    def http(self) -> str:
        """The address for clients: it stays when the server is started again."""
        return self.proxy.http

    def cut(self) -> None:
        """Every connection breaks; the server has seen nothing else."""
        assert self.proxy.cut() > 0

    def die_and_return(self) -> None:
        """kill -9 and a start on the same data; who connects meanwhile waits at the address."""
        self.proxy.hold()
        self.server.kill()
        self.gates.forget()
        self.proxy.cut()
        self.server.start()
        self.proxy.lead_to(self.server.http)
