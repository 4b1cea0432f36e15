"""All parts of the contract in one class; those of tools and of capabilities only where the runtime has them."""

from __future__ import annotations

from typing import Any

from pizzabot.testing.runtime_contract.approvals import ApprovalContract
from pizzabot.testing.runtime_contract.branches import BranchContract
from pizzabot.testing.runtime_contract.compaction import CompactionContract
from pizzabot.testing.runtime_contract.history import HistoryContract
from pizzabot.testing.runtime_contract.intents import IntentContract
from pizzabot.testing.runtime_contract.memory import MemoryContract
from pizzabot.testing.runtime_contract.recovering import RecoveringContract
from pizzabot.testing.runtime_contract.stopping import StoppingContract
from pizzabot.testing.runtime_contract.streaming import StreamingContract
from pizzabot.testing.runtime_contract.tool_calls import ToolCallContract
from pizzabot.testing.runtime_contract.tool_stops import ToolStopContract

_OF_TOOLS = (ToolCallContract, ApprovalContract, IntentContract, ToolStopContract)


class AgentRuntimeContract(
    StreamingContract,
    MemoryContract,
    StoppingContract,
    RecoveringContract,
    ToolCallContract,
    ApprovalContract,
    IntentContract,
    ToolStopContract,
    HistoryContract,
    BranchContract,
    CompactionContract,
):
    """Inherit it in a class whose name begins with `Test` and say how a runtime is made."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        parts = {**dict.fromkeys(_OF_TOOLS, cls.tools), HistoryContract: cls.keeps_history}
        parts |= {BranchContract: cls.keeps_branches, CompactionContract: cls.compacts_context}
        for part, wanted in parts.items():
            for name, test in vars(part).items():
                if name.startswith("test_") and wanted == (getattr(cls, name) is None):
                    # pytest collects nothing by a name that is None: not a test that is skipped
                    setattr(cls, name, test if wanted else None)
