"""Points where a server's process waits for the test: a listener on loopback that answers at once, or holds.

with Gates() as gates:
    gates.hold("after post a")
    ...                                # a server whose plugin passes there
    gates.reached("after post a")      # it stands there now
    gates.release("after post a")
"""

from __future__ import annotations

import socket
import threading
from typing import Self

WAIT_SECONDS = 20.0


class Gates:
    """Names are compared by their beginning, so that what passes can say more than its name."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._held: set[str] = set()
        self._standing: list[tuple[str, socket.socket]] = []
        self._change = threading.Condition()
        self.passed: list[str] = []
        """Everything that arrived, held or not, in order."""

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._serve, name="gates", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(WAIT_SECONDS)
        self._listener.close()
        for _, connection in self._standing:
            connection.close()

    def hold(self, *names: str) -> None:
        with self._change:
            self._held.update(names)

    def reached(self, name: str, *, times: int = 1) -> str:
        """Wait until somebody stands at the gate; the whole of what was said there."""
        with self._change:
            there = self._change.wait_for(lambda: len(self._at(name)) >= times, WAIT_SECONDS)
            assert there, f"nobody came to {name!r}; passed: {self.passed}"
            return self._at(name)[-1]

    def passes(self, name: str) -> None:
        """Wait until somebody has been at the gate, held or not."""
        with self._change:
            been = self._change.wait_for(lambda: any(said.startswith(name) for said in self.passed), WAIT_SECONDS)
            assert been, f"nobody came by {name!r}; passed: {self.passed}"

    def release(self, name: str) -> None:
        """Let everybody at the gate go on, and whoever comes later."""
        with self._change:
            self._held.discard(name)
            gone = [(said, connection) for said, connection in self._standing if said.startswith(name)]
            self._standing = [entry for entry in self._standing if entry not in gone]
        for _, connection in gone:
            _let_go(connection)

    def forget(self) -> None:
        """Nobody stands anywhere any more (the process was killed), and nothing is held."""
        with self._change:
            self._held.clear()
            left, self._standing = self._standing, []
        for _, connection in left:
            connection.close()

    def _at(self, name: str) -> list[str]:
        return [said for said, _ in self._standing if said.startswith(name)]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection.makefile("r") as file:
                said = file.readline().strip()
            with self._change:
                self.passed.append(said)
                held = any(said.startswith(name) for name in self._held)
                if held:
                    self._standing.append((said, connection))
                self._change.notify_all()
            if not held:
                _let_go(connection)


def _let_go(connection: socket.socket) -> None:
    try:
        connection.sendall(b"go\n")
    except OSError:
        pass  # killed meanwhile
    finally:
        connection.close()
