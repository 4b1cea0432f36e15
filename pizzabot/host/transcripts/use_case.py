"""The transcripts as transports are handed them: `Transcripts` of the contract."""

from __future__ import annotations

from pizzabot.host.transcripts.branches import Branches
from pizzabot.host.transcripts.export import Exporter
from pizzabot.host.transcripts.reading import TranscriptReader


class HostTranscripts:
    """Implements `pizzabot_hookspecs.host.Transcripts`; the docstrings are there."""

    def __init__(self, reader: TranscriptReader, branches: Branches, exporter: Exporter) -> None:
        self.page = reader.page
        self.items = reader.items
        self.tool_text = reader.tool_text
        self.export = exporter.export
        self.choose_head = branches.choose_head
        self.fork = branches.fork
        self.compact = branches.compact
