"""What is remembered across threads: Markdown documents in the data root, for the person and for the agent.

`MemoryArea(caller, documents=…, enabled=…)` is the agent's view; `HostMemories.area(caller)` makes one for a turn.
"""

from pizzabot.host.memories.area import MemoryArea
from pizzabot.host.memories.use_case import HostMemories

__all__ = ["HostMemories", "MemoryArea"]
