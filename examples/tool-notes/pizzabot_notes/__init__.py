"""Two tools for the agent: `write_note` asks a person each time, `read_notes` only reads and runs unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.agent_tools import AgentToolSource


@hookimpl
def pizzabot_agent_tools() -> list[Offer[AgentToolSource]]:
    from pizzabot_notes.tools import NoteSettings, create

    return [Offer(name="notes", summary="writes notes, after asking", create=create, settings=NoteSettings)]
