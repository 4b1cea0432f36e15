"""Every limit of the code interpreter; docs/operate/limits.md has a row for each."""

from __future__ import annotations

EVAL_SECONDS = 120.0
"""Wall clock of one eval, what it waits for included (spec/05 §7)."""

MAX_CODE_BYTES = 256 * 1024
"""UTF-8 bytes of the code of one eval."""

MAX_RESULT_CHARACTERS = 8_000
"""Characters of console output and result together that reach the conversation (spec/05 §7)."""

MEMORY_BYTES = 64 * 1024 * 1024
"""Linear memory of one sandbox. The store refuses to grow it further; QuickJS's own limit holds nothing (measured)."""

STACK_BYTES = 2 * 1024 * 1024
"""Native stack of one sandbox: about 2,100 JavaScript calls deep (measured)."""

THREAD_STACK_BYTES = 8 * 1024 * 1024
"""Stack of the thread that a sandbox computes in: more than `STACK_BYTES`, whatever `ulimit -s` says."""

MAX_BRIDGED_CALLS = 256
"""Calls of `tools.*` and `task` in one eval."""

MAX_BRIDGED_CHARACTERS = 1024 * 1024
"""Characters of JSON that go into a bridged call, and that come out of one."""

MAX_CONCURRENT_TASKS = 32
"""Subagents of one eval at work at once; more of them wait (spec/05 §7)."""

MAX_SANDBOXES = 16
"""Sandboxes without `task` at once, in the whole process."""

MAX_DELEGATING_SANDBOXES = 8
"""Sandboxes with `task` at once. Counted apart: they wait for subagents, which may need a sandbox themselves."""

SANDBOX_WAIT_SECONDS = 60.0
"""How long an eval waits for a sandbox to become free."""

IDLE_SECONDS = 600.0
"""An unused sandbox is dropped after this (spec/05 §7)."""

STOP_SECONDS = 0.5
"""How long a stopped guest may take to leave its thread."""

BRIDGE_STOP_SECONDS = 5.0
"""How long cancelled calls of the host may take to end."""
