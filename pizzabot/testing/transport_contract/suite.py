"""All parts of the contract in one class; history, activity and transcripts only where the transport has them."""

from __future__ import annotations

from typing import Any, ClassVar

from pizzabot.testing.transport_contract.activity import ActivityContract
from pizzabot.testing.transport_contract.commands import CommandContract
from pizzabot.testing.transport_contract.following import FollowingContract
from pizzabot.testing.transport_contract.history import HistoryContract
from pizzabot.testing.transport_contract.replaying import ReplayingContract
from pizzabot.testing.transport_contract.threads import ThreadContract
from pizzabot.testing.transport_contract.transcripts import TranscriptContract


class TransportContract(
    ThreadContract,
    CommandContract,
    ReplayingContract,
    FollowingContract,
    HistoryContract,
    ActivityContract,
    TranscriptContract,
):
    """Subclass it with `client`. The name of each test is the promise that it holds the transport to."""

    history: ClassVar[bool] = False
    activity: ClassVar[bool] = False
    transcripts: ClassVar[bool] = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        parts = (
            (HistoryContract, cls.history),
            (ActivityContract, cls.activity),
            (TranscriptContract, cls.transcripts),
        )
        lacks = [part for part, has in parts if not has]
        for name in (name for part in lacks for name in vars(part) if name.startswith("test_")):
            setattr(cls, name, None)  # pytest collects nothing by this name: not a test that is skipped
