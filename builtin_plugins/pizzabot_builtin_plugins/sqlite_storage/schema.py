"""The tables of `app.sqlite`, as numbered migrations. A released migration is never edited, only followed by another.

Times are ISO-8601 UTC text with microseconds, except `run_events.at`, a frame's milliseconds. `runs.position` orders a
thread's queue behind the runs that `resume` something; `runs.began` counts the thread's runs in the order in which they
were first claimed. `place` is the order of insertion, which no clock and no VACUUM changes. `transcripts` and
`transcript_turns` are the host's fold of the log, which can be dropped and made anew at any time. `workspace_files` and
`attachments` say what there is; the bytes are files of the data root.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """One step of one component's schema: statements that run in one transaction with the row that records them."""

    component: str
    version: int
    statements: tuple[str, ...]


_THREADS = """
CREATE TABLE threads (
  thread_id TEXT PRIMARY KEY NOT NULL,
  owner TEXT NOT NULL,
  title TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_activity_at TEXT NOT NULL,
  next_seq INTEGER NOT NULL DEFAULT 1,
  model_id TEXT,
  metadata TEXT NOT NULL DEFAULT '{}'
)
"""

_RUNS = """
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY NOT NULL,
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  status TEXT NOT NULL,
  input TEXT NOT NULL,
  options TEXT NOT NULL,
  created_at TEXT NOT NULL,
  epoch INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0,
  server_id TEXT,
  started_at TEXT,
  ended_at TEXT,
  cancel_requested_at TEXT,
  cancel_reason TEXT,
  idempotency_key TEXT,
  message_id TEXT,
  error_code TEXT,
  error TEXT,
  fingerprint TEXT NOT NULL,
  position INTEGER NOT NULL,
  replacement INTEGER NOT NULL,
  began INTEGER,
  first_seq INTEGER
)
"""

_RUN_EVENTS = """
CREATE TABLE run_events (
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  run_id TEXT,
  epoch INTEGER NOT NULL,
  method TEXT NOT NULL,
  namespace TEXT,
  payload BLOB NOT NULL,
  at INTEGER NOT NULL,
  node TEXT,
  name TEXT,
  PRIMARY KEY (thread_id, seq)
)
"""

_SETTINGS = """
CREATE TABLE settings (
  owner TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (owner, key)
)
"""

_INTERRUPTS = """
CREATE TABLE interrupts (
  place INTEGER PRIMARY KEY,
  interrupt_id TEXT NOT NULL,
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  namespace TEXT,
  payload TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at TEXT NOT NULL,
  answer TEXT,
  decided_by TEXT,
  decided_at TEXT,
  UNIQUE (thread_id, interrupt_id)
)
"""

_INTENTS = """
CREATE TABLE intents (
  place INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  namespace TEXT,
  opened_at TEXT NOT NULL,
  closed_at TEXT,
  UNIQUE (run_id, call_id)
)
"""

_TRANSCRIPTS = """
CREATE TABLE transcripts (
  thread_id TEXT PRIMARY KEY NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  cursor INTEGER NOT NULL,
  summary BLOB NOT NULL
)
"""

_TRANSCRIPT_TURNS = """
CREATE TABLE transcript_turns (
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  turn_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  rev INTEGER NOT NULL,
  parent_id TEXT,
  settled INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (thread_id, turn_id)
)
"""

_WORKSPACE_FILES = """
CREATE TABLE workspace_files (
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  version INTEGER NOT NULL,
  sha256 TEXT,
  size INTEGER NOT NULL,
  media_type TEXT NOT NULL,
  author TEXT NOT NULL,
  turn_id TEXT,
  run_id TEXT,
  seq INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (thread_id, path, version)
) WITHOUT ROWID
"""

_ATTACHMENTS = """
CREATE TABLE attachments (
  attachment_id TEXT PRIMARY KEY NOT NULL,
  owner TEXT NOT NULL,
  thread_id TEXT REFERENCES threads (thread_id) ON DELETE CASCADE,
  filename TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  created_at TEXT NOT NULL
)
"""

_UNCLAIMED_ATTACHMENTS = """
CREATE TABLE attachments (
  attachment_id TEXT PRIMARY KEY NOT NULL,
  owner TEXT NOT NULL,
  filename TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  created_at TEXT NOT NULL
)
"""

_ATTACHMENT_THREADS = """
CREATE TABLE attachment_threads (
  attachment_id TEXT NOT NULL REFERENCES attachments (attachment_id) ON DELETE CASCADE,
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  UNIQUE (thread_id, attachment_id)
)
"""

_LAST_THREAD_GONE = """
CREATE TRIGGER attachments_go_with_their_last_thread AFTER DELETE ON attachment_threads
WHEN NOT EXISTS (SELECT 1 FROM attachment_threads WHERE attachment_id = OLD.attachment_id)
BEGIN
  DELETE FROM attachments WHERE attachment_id = OLD.attachment_id;
END
"""

_FOLDER_GRANTS = """
CREATE TABLE folder_grants (
  grant_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  label TEXT NOT NULL,
  path TEXT NOT NULL,
  read_only INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (owner, grant_id),
  UNIQUE (owner, path)
)
"""

_RUN_MESSAGES = """
CREATE TABLE run_messages (
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  message_id TEXT NOT NULL,
  digest BLOB NOT NULL,
  PRIMARY KEY (thread_id, message_id)
) WITHOUT ROWID
"""

MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        component="app",
        version=1,
        statements=(
            _THREADS,
            "CREATE INDEX threads_by_activity ON threads (owner, last_activity_at)",
            _RUNS,
            # durable-runs: at most one row per thread is active, whatever the code above believes.
            "CREATE UNIQUE INDEX runs_active ON runs (thread_id) WHERE status IN ('running', 'cancelling')",
            "CREATE INDEX runs_queue ON runs (thread_id, position) WHERE status = 'pending'",
            "CREATE INDEX runs_unfinished ON runs (created_at) WHERE status IN ('pending', 'running', 'cancelling')",
            "CREATE UNIQUE INDEX runs_by_key ON runs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL",
            "CREATE UNIQUE INDEX runs_by_message ON runs (thread_id, message_id) WHERE message_id IS NOT NULL",
            "CREATE INDEX runs_by_beginning ON runs (thread_id, began, first_seq)",
            _RUN_EVENTS,
            _SETTINGS,
        ),
    ),
    Migration(
        component="app",
        version=2,
        statements=(
            "ALTER TABLE runs ADD COLUMN lease_until TEXT",
            "ALTER TABLE runs ADD COLUMN resume INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE runs ADD COLUMN merged_at TEXT",
            "DROP INDEX runs_queue",
            "CREATE INDEX runs_queue ON runs (thread_id, resume DESC, position) WHERE status = 'pending'",
            "CREATE INDEX runs_unmerged ON runs (ended_at) WHERE ended_at IS NOT NULL AND merged_at IS NULL",
            _INTERRUPTS,
            "CREATE INDEX interrupts_by_id ON interrupts (interrupt_id)",
            "CREATE INDEX interrupts_open ON interrupts (owner) WHERE state = 'open'",
            "CREATE INDEX interrupts_open_by_thread ON interrupts (thread_id) WHERE state = 'open'",
            _INTENTS,
            "CREATE INDEX intents_open ON intents (run_id) WHERE closed_at IS NULL",
        ),
    ),
    Migration(
        component="app",
        version=3,
        statements=(
            # Threads whose last run failed are listed (`ThreadStatus.ERROR`): without it, by a look at every thread.
            "CREATE INDEX runs_failed ON runs (thread_id) WHERE status IN ('error', 'timeout')",
            "ALTER TABLE runs ADD COLUMN released INTEGER NOT NULL DEFAULT 0",
            """
            CREATE INDEX runs_stopped ON runs (thread_id) WHERE status = 'pending' AND cancel_requested_at IS NOT NULL
            """,
        ),
    ),
    Migration(
        component="app",
        version=4,
        statements=(
            _TRANSCRIPTS,
            _TRANSCRIPT_TURNS,
            # It covers what the index of a transcript is made of: the bodies, up to 50 KB each, are not read for it.
            """
            CREATE INDEX transcript_turns_by_place
            ON transcript_turns (thread_id, seq, turn_id, rev, parent_id, settled)
            """,
            # Few events have a name: the newest fact is found without a look at the others, be there one or none.
            "CREATE INDEX run_events_named ON run_events (thread_id, name, seq) WHERE name IS NOT NULL",
        ),
    ),
    Migration(
        component="app",
        version=5,
        statements=(
            # Its rows lie in the order of (thread, path, version): the newest version of each path is one walk.
            _WORKSPACE_FILES,
            "CREATE INDEX workspace_files_by_run ON workspace_files (thread_id, run_id, seq) WHERE run_id IS NOT NULL",
            "CREATE INDEX workspace_files_by_blob ON workspace_files (sha256) WHERE sha256 IS NOT NULL",
            _ATTACHMENTS,
            "CREATE INDEX attachments_by_thread ON attachments (thread_id) WHERE thread_id IS NOT NULL",
            _FOLDER_GRANTS,
            _RUN_MESSAGES,
        ),
    ),
    Migration(
        component="app",
        version=6,
        statements=(
            # An attachment of a thread and of its forks belongs to each of them.
            "ALTER TABLE attachments RENAME TO attachments_of_one",
            _UNCLAIMED_ATTACHMENTS,
            """
            INSERT INTO attachments
            SELECT attachment_id, owner, filename, media_type, size, created_at FROM attachments_of_one
            """,
            _ATTACHMENT_THREADS,
            """
            INSERT INTO attachment_threads (attachment_id, thread_id)
            SELECT attachment_id, thread_id FROM attachments_of_one WHERE thread_id IS NOT NULL
            """,
            "DROP TABLE attachments_of_one",
            "CREATE INDEX attachment_threads_by_attachment ON attachment_threads (attachment_id)",
            _LAST_THREAD_GONE,
        ),
    ),
)
