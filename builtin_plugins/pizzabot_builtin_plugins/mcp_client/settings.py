"""Settings of the MCP client, `[mcp.mcp]`, and its limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""Of one message of a server; a longer one ends the session."""
MAX_LISTING_BYTES = 2 * 1024 * 1024
"""Of one message until the tools are listed: many small objects take longer to read than one long text."""
MAX_STDERR_LINES = 50
MAX_STDERR_LINE = 2_000
"""Characters of a line of stderr that are kept."""
MAX_NOISE_LINES = 1_000
"""Lines on stdout that are not MCP, before the tools are listed; more end the attempt: it is not an MCP server."""
MAX_PAGES = 100
"""Of one listing of tools."""
MAX_DESCRIPTION = 8_000
"""Characters of a tool's description that a model is shown."""
MAX_SCHEMA_NODES = 5_000
"""Objects of a tool's schema, references put in; what is beyond is any value."""
MAX_SCHEMA_DEPTH = 24
MAX_IMAGES = 8
"""Of one result; further ones are left out, and the result says so."""
MAX_IMAGE_CHARACTERS = 5_000_000
"""Of one image in base64."""
INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""Variables that every stdio server gets, as the MCP packages have it. Nothing else: the rest may hold secrets."""


class McpClientSettings(BaseModel):
    """`inherit` names further variables that stdio servers get; `output_characters` bounds a result's text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    inherit: tuple[str, ...] = ("AWS_PROFILE", "AWS_REGION")
    output_characters: Annotated[int, Field(ge=1_000, le=2_000_000)] = 100_000
    read_seconds: Annotated[float, Field(gt=0, le=86_400)] = 600.0
