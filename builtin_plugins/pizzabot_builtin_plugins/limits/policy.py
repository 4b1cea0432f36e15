"""The limits and what is said when one is reached."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pizzabot_hookspecs import Conflict, TooLarge
from pizzabot_hookspecs.admission_policies import AdmissionRequest


class LimitSettings(BaseModel):
    """`[admission_policies.limits]`."""

    model_config = ConfigDict(extra="forbid")

    waiting_runs: int = Field(default=100, ge=1, le=10_000, description="messages that may wait on one thread")
    message_characters: int = Field(
        default=400_000, ge=1, le=10_000_000, description="characters in the messages of one request"
    )


class Limits:
    """Answers to decisions are never refused: a person is waiting for them."""

    def __init__(self, settings: LimitSettings) -> None:
        self._settings = settings

    async def admit(self, request: AdmissionRequest, /) -> None:
        if request.resume:
            return
        most = self._settings.message_characters
        if request.characters > most:
            raise TooLarge(
                "message_too_long",
                f"the message has {request.characters} characters, at most {most} are taken: shorten it",
            )
        waiting = self._settings.waiting_runs
        if request.waiting >= waiting:
            raise Conflict(
                "queue_full",
                f"{request.waiting} messages wait on this thread, at most {waiting} may: wait or stop the run",
            )
