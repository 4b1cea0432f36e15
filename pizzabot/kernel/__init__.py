"""The kernel: find -> check -> load -> choose -> start -> stop. It knows plugins, and no use case.

pluggy calls the hooks, `importlib.metadata` finds third parties, `packaging` reads their requirements; nothing else.
"""

from pizzabot.kernel.builtins import BUILTINS
from pizzabot.kernel.errors import AmbiguousOffer, BrokenPlugin, NoSuchOffer
from pizzabot.kernel.lifecycle import Lifecycle
from pizzabot.kernel.offers import OfferRecord
from pizzabot.kernel.plugins import Plugins
from pizzabot.kernel.reports import PluginReport, PluginState

__all__ = [
    "BUILTINS",
    "AmbiguousOffer",
    "BrokenPlugin",
    "Lifecycle",
    "NoSuchOffer",
    "OfferRecord",
    "PluginReport",
    "PluginState",
    "Plugins",
]
