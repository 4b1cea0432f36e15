"""Logs: JSON lines in the data root, short lines on a terminal, written by a thread, secrets redacted (spec/09 §6)."""

from pizzabot.logs.configure import Logs, configure_logging
from pizzabot.logs.context import log_context
from pizzabot.logs.limits import LogLimits

__all__ = ["LogLimits", "Logs", "configure_logging", "log_context"]
