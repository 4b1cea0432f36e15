"""The one redactor of a command's process: it knows the environment's secrets, and learns those that are resolved."""

from __future__ import annotations

import os
from functools import cache

from pizzabot_hookspecs.support.redaction import Redactor


@cache
def process_redactor() -> Redactor:
    """Hand it to whatever a command starts: the last line on standard error goes through it, too."""
    return Redactor.from_environment(os.environ)
