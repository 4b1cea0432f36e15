"""`TransportContract`: what any transport must do, whatever it speaks. Subclass it and say how a client is made::

    class TestLines(TransportContract):
        @asynccontextmanager
        async def client(self, host: ScriptedHost) -> AsyncIterator[TransportClient]:
            transport = LinesTransport(host, port=0)
            await transport.bind()
            serving = asyncio.create_task(transport.serve())
            try:
                yield LinesClient(transport.address)
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

Every test makes a fresh `ScriptedHost` and a fresh client. Nothing may take longer than `patience` seconds.

A transport that tells earlier states says `history = True`, and its client is a `HistoryClient`; one that tells what
changes on all threads says `activity = True`, and its client is an `ActivityClient`; one that serves the transcript,
as any that speaks HTTP does, says `transcripts = True`, and its client is a `TranscriptClient`. Only then are these
tested.
"""

from __future__ import annotations

from pizzabot.testing.transport_contract.base import EVERYTHING, TERMINAL, within_patience
from pizzabot.testing.transport_contract.clients import (
    ActivityClient,
    ExportedFile,
    FrameDict,
    HistoryClient,
    TranscriptClient,
    TransportClient,
)
from pizzabot.testing.transport_contract.suite import TransportContract

__all__ = [
    "EVERYTHING",
    "TERMINAL",
    "ActivityClient",
    "ExportedFile",
    "FrameDict",
    "HistoryClient",
    "TranscriptClient",
    "TransportClient",
    "TransportContract",
    "within_patience",
]
