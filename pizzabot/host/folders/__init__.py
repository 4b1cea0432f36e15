"""Folders of the person's machine that the agent may use: granted by the person or in the file, looked up each time.

`GrantedArea(caller, grants=…, pool=…)` is the agent's view; `HostFolders.area(caller)` makes one for a turn.
"""

from pizzabot.host.folders.area import GrantedArea
from pizzabot.host.folders.use_case import HostFolders

__all__ = ["GrantedArea", "HostFolders"]
