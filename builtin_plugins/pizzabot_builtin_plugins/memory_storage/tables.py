"""`Tables`: threads, runs, events, transcripts, files, interrupts and settings as dictionaries, one part per subject.

Synchronous: on one loop, each call is one transaction. Every method looks first and changes afterwards, so that one
that raises has changed nothing.
"""

from __future__ import annotations

from pizzabot_builtin_plugins.memory_storage.admission import AdmissionTables
from pizzabot_builtin_plugins.memory_storage.adoption import AdoptionTables
from pizzabot_builtin_plugins.memory_storage.decisions import DecisionTables
from pizzabot_builtin_plugins.memory_storage.runs import RunTables
from pizzabot_builtin_plugins.memory_storage.threads import ThreadTables
from pizzabot_builtin_plugins.memory_storage.transcript import TranscriptTables
from pizzabot_builtin_plugins.memory_storage.workspace import WorkspaceTables


class Tables(
    WorkspaceTables,
    RunTables,
    AdoptionTables,
    TranscriptTables,
    DecisionTables,
    AdmissionTables,
    ThreadTables,
):
    """Everything, gone with the object."""
