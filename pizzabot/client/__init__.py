"""A client for pizzabot's servers. It stands alone: httpx and this folder are all it needs.

    async with Client("http://127.0.0.1:8080", token) as client:
        await client.check_identity()
        thread_id = await client.create_thread()
        async for event in client.stream(thread_id, "Tell me about pizza"):
            if isinstance(event, TextDelta):
                print(event.text, end="")

Errors:

ClientError                 `code` and `detail`, one line
 ├── UnreachableError       no answer, or one that says that the server stops, after the tries that are allowed
 ├── IncompatibleError      something answers, but no pizzabot of this protocol
 ├── RefusedError           the server says no; `code` is the server's, `status` HTTP's
 └── StreamCutError         the stream cannot be followed to its end
"""

from pizzabot.client.connection import Client, StartedRun
from pizzabot.client.errors import ClientError, IncompatibleError, RefusedError, StreamCutError, UnreachableError
from pizzabot.client.events import (
    Event,
    EventReader,
    Gap,
    MessageCut,
    Question,
    ReasoningDelta,
    RunEnded,
    RunFailed,
    RunOutcome,
    TextDelta,
    ToolFailed,
    ToolFinished,
    ToolStarted,
)
from pizzabot.client.ids import uuid7

__all__ = [
    "Client",
    "ClientError",
    "Event",
    "EventReader",
    "Gap",
    "IncompatibleError",
    "MessageCut",
    "Question",
    "ReasoningDelta",
    "RefusedError",
    "RunEnded",
    "RunFailed",
    "RunOutcome",
    "StartedRun",
    "StreamCutError",
    "TextDelta",
    "ToolFailed",
    "ToolFinished",
    "ToolStarted",
    "UnreachableError",
    "uuid7",
]
