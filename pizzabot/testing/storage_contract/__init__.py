"""`StorageContract`: what every storage backend promises, as tests to subclass. Nothing here knows a database.

    class TestMyStorage(StorageContract):
        durable = True

        def storage(self, path):
            return MyStorage(path)

`storage` returns an async context manager on what belongs to `path`: the same path again is the same storage. With
`durable`, reopening must find everything; without, nothing. With `several_engines`, the tests of two engines on one
store open it twice at once. `RunStoreContract` and `InterruptContract` are in it, and can be passed alone before the
rest is there. The source of a test is the docstring of the method it names (`pizzabot_hookspecs.storage_backends`,
`.file_storage`) and design/durable-runs.md.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pizzabot.testing.interrupt_contract import InterruptContract
from pizzabot.testing.run_store_contract import RunStoreContract
from pizzabot.testing.storage_contract.adopting import AdoptingContract
from pizzabot.testing.storage_contract.attachments import AttachmentContract
from pizzabot.testing.storage_contract.deleting import DeletingContract
from pizzabot.testing.storage_contract.facts import FactContract
from pizzabot.testing.storage_contract.file_copies import FileCopyContract
from pizzabot.testing.storage_contract.file_writing import FileWritingContract
from pizzabot.testing.storage_contract.files import FileContract
from pizzabot.testing.storage_contract.folder_grants import FolderGrantContract
from pizzabot.testing.storage_contract.graph import GraphContract
from pizzabot.testing.storage_contract.owners import ThreadOwnerContract
from pizzabot.testing.storage_contract.preferences import SettingContract
from pizzabot.testing.storage_contract.reopening import ReopeningContract
from pizzabot.testing.storage_contract.status import ThreadStatusContract
from pizzabot.testing.storage_contract.threads import ThreadContract
from pizzabot.testing.storage_contract.transcripts import TranscriptContract
from pizzabot_hookspecs.storage_backends import Storage


class StorageContract(
    ThreadContract,
    ThreadOwnerContract,
    ThreadStatusContract,
    SettingContract,
    DeletingContract,
    FactContract,
    TranscriptContract,
    AdoptingContract,
    FileWritingContract,
    FileContract,
    FileCopyContract,
    AttachmentContract,
    FolderGrantContract,
    GraphContract,
    ReopeningContract,
    RunStoreContract,
    InterruptContract,
):
    """All parts. Each test opens a storage of its own below the folder that it is given."""

    @abstractmethod
    def storage(self, path: Path) -> AbstractAsyncContextManager[Storage]: ...


__all__ = ["StorageContract"]
