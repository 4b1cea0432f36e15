"""The contract between pizzabot and its plugins: hooks, Protocols and the values that cross the border.

A plugin needs three names from here and the module of its kind::

    from pizzabot_hookspecs import Context, Offer, hookimpl
    from pizzabot_hookspecs.model_providers import ModelDescriptor, ModelProvider

Importing this package loads pluggy and the standard library, nothing else.
"""

from pizzabot_hookspecs.callers import LOCAL, SYSTEM, Caller
from pizzabot_hookspecs.errors import (
    Conflict,
    InvalidRequest,
    NotFound,
    NotPermitted,
    PizzabotError,
    TooLarge,
    Unavailable,
)
from pizzabot_hookspecs.offers import Context, Logger, Offer, Secrets, hookimpl

__all__ = [
    "LOCAL",
    "SYSTEM",
    "Caller",
    "Conflict",
    "Context",
    "InvalidRequest",
    "Logger",
    "NotFound",
    "NotPermitted",
    "Offer",
    "PizzabotError",
    "Secrets",
    "TooLarge",
    "Unavailable",
    "hookimpl",
]
