"""The limits of MCP servers that are not settings."""

from __future__ import annotations

MAX_SERVERS = 100
"""That are connected; further ones are listed with the reason."""
MAX_ENTRY_STRINGS = 256
"""Arguments, variables or headers of one entry."""
MAX_ENTRY_CHARACTERS = 32_768
"""Of one string of an entry."""
MAX_HIDE_PATTERNS = 64
ATTEMPTS = 2
"""Of one connecting; between them 0.25 s."""
ATTEMPT_PAUSE_SECONDS = 0.25
SLOT_SECONDS = 1.0
"""How long a server that does not answer holds up the others; it goes on waiting beside them."""
FIRST_RETRY_SECONDS = 30.0
"""After a first connecting that failed; twice as long after each further failure."""
RECONNECT_SECONDS = 1.0
"""After a crash; twice as long after each further failure, up to the next one."""
MAX_RECONNECT_SECONDS = 300.0
STABLE_SECONDS = 60.0
"""A session that lasted as long makes the next crash a first one."""
PING_ANSWER_SECONDS = 10.0
RETIRE_SECONDS = 600.0
"""How long a session that is replaced is kept for the runs that were active then."""
MAX_RETIRED = 32
"""Sessions kept for them; the oldest is closed when there are more."""
SOURCE_SECONDS = 30.0
"""For a source to tell its definitions; then what it told before stays."""
WATCH_AGAIN_SECONDS = 5.0
DETAIL_CHARACTERS = 500
"""Of a state's one line."""
