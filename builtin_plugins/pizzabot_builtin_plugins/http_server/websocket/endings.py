"""Why a socket ends, and the close code and reason that its client reads."""

from __future__ import annotations

from enum import Enum


class Ending(Enum):
    """The value is the close code; None where nobody is there to read one."""

    LEFT = None
    NO_HELLO = 4400
    UNAUTHORIZED = 4401
    SILENT = 4408
    STALLED = -1
    """Not sent: what a client does not read it does not hear either. Its connection is cut."""
    STOPPING = 1001
    TOO_MANY = 1013
    FAILED = 1011


REASONS = {
    Ending.NO_HELLO: 'the first message has to be {"type": "hello"}',
    Ending.UNAUTHORIZED: "unauthorized: hello needs the server's token",
    Ending.SILENT: "nothing was heard of the client",
    Ending.STOPPING: "the server is stopping; connect again in a moment",
    Ending.TOO_MANY: "too many sockets are open (limit sockets); close one first",
    Ending.FAILED: "something failed inside the server; its log has the cause",
}
"""At most 123 bytes each (RFC 6455 section 5.5)."""
