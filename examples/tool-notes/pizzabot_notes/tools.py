"""The source of the tools, and the settings `[agent_tools.notes]`."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, ConfigDict, Field

from pizzabot_hookspecs import Context
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_notes.notebook import MAX_CHARACTERS, Notebook


class NoteSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    max_notes: int = Field(default=100, ge=1, le=1_000, description="notes that are kept; then none is taken any more")


class NoteTools:
    """An `AgentToolSource`."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    async def tools(self) -> list[AgentTool]:
        # The import takes a while the first time, and this runs on the host's loop.
        return await asyncio.to_thread(self._make)

    def _make(self) -> list[AgentTool]:
        from langchain_core.tools import StructuredTool

        async def write_note(text: str) -> str:
            number = await asyncio.to_thread(self._notebook.write, text)
            return f"Note {number} is written."

        async def read_notes() -> str:
            return await asyncio.to_thread(self._notebook.read) or "There are no notes."

        write = StructuredTool.from_function(
            coroutine=write_note,
            name="write_note",
            description=f"Write a note for later. `text` has at most {MAX_CHARACTERS} characters.",
        )
        read = StructuredTool.from_function(
            coroutine=read_notes, name="read_notes", description="Read all notes, the oldest first."
        )
        return [
            # A person sees the text and says yes, another text, or no. After a crash a person is asked, too:
            # a note that is written twice is a mistake.
            AgentTool(tool=write, approval=frozenset({"approve", "edit", "reject"})),
            AgentTool(tool=read, repeatable=True),
        ]


def create(context: Context, settings: NoteSettings) -> NoteTools:
    return NoteTools(Notebook(context.data_root / "notes", max_notes=settings.max_notes))
