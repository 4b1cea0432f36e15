"""An error that the guest is to catch."""

from __future__ import annotations

MAX_MESSAGE_CHARACTERS = 2_000
"""Characters of a message that the guest is told."""


class Refused(Exception):
    """Thrown in the guest as an `Error` named `ToolError`, with the facts as properties."""

    def __init__(self, message: str, **facts: int) -> None:
        super().__init__(message)
        self.facts = facts

    def told(self) -> dict[str, object]:
        """What the guest makes its error of."""
        return {"message": str(self)[:MAX_MESSAGE_CHARACTERS], "facts": [["name", "ToolError"], *self.facts.items()]}
