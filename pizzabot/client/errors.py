"""What the client raises. Every one has a `code` for programs and a `detail` for people, in one line."""

from __future__ import annotations


class ClientError(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class UnreachableError(ClientError):
    """The server did not answer; whether it did what was asked is unknown only where `detail` says so."""


class IncompatibleError(ClientError):
    """Something answers at the address that is no pizzabot, or one of another protocol version."""


class RefusedError(ClientError):
    """The server's own error: `code` and `detail` are its words, `status` is HTTP's (200 for a refused command)."""

    def __init__(self, code: str, detail: str, *, status: int) -> None:
        super().__init__(code, detail)
        self.status = status


class StreamCutError(ClientError):
    """The event stream broke off, or is malformed, more often than is allowed. The run itself goes on in the server."""
