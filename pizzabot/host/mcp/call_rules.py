"""What is around each call of a server's tools: `CallRules`, and `CallWatch`, which knows what goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pizzabot_hookspecs import Logger


class CallWatch:
    """Of one session: how many calls go on, and `doubt`, set when one was not answered in time."""

    def __init__(self) -> None:
        self.going_on = 0
        self.doubt = asyncio.Event()


@dataclass(frozen=True, kw_only=True)
class CallRules:
    """`redact` is for what is told of failures, `conceal` for results: it hides known secrets and nothing else."""

    server_id: str
    seconds: float
    logger: Logger
    redact: Callable[[str], str]
    conceal: Callable[[str], str]
    watch: CallWatch
