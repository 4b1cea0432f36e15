"""What a thread's runs and interrupts say of it, as SQL on a row of `threads`. Nothing of it is stored."""

from __future__ import annotations

from pizzabot_builtin_plugins.sqlite_storage.runs import MAY_BEGIN
from pizzabot_hookspecs.storage_backends import ThreadStatus

_OF_THREAD = "FROM runs WHERE runs.thread_id = threads.thread_id AND"
_ASKED = "SELECT 1 FROM interrupts WHERE interrupts.thread_id = threads.thread_id AND interrupts.state = 'open'"

# Each question is a step in an index. In a thread one run is active at a time: the order of the beginnings is that of
# the ends, whatever the clock does. What ended in the queue never began (NULL) and counts only where nothing did.
THREAD_STATUS = (
    f"CASE WHEN EXISTS (SELECT 1 {_OF_THREAD} runs.status IN ('running', 'cancelling')) "
    f"OR EXISTS (SELECT 1 {_OF_THREAD} runs.status = 'pending' AND {MAY_BEGIN}) THEN 'busy' "
    f"WHEN EXISTS ({_ASKED}) THEN 'interrupted' "
    f"WHEN (SELECT runs.status {_OF_THREAD} runs.ended_at IS NOT NULL ORDER BY runs.began DESC, runs.first_seq DESC "
    "LIMIT 1) IN ('error', 'timeout') THEN 'error' ELSE 'idle' END"
)

# Of 100,000 threads few are so: looking at each of them takes 150 ms, at these under 3 ms. Most are idle.
CANDIDATES = {
    ThreadStatus.BUSY: "SELECT thread_id FROM runs WHERE status IN ('pending', 'running', 'cancelling')",
    ThreadStatus.INTERRUPTED: "SELECT thread_id FROM interrupts WHERE state = 'open'",
    ThreadStatus.ERROR: "SELECT thread_id FROM runs WHERE status IN ('error', 'timeout')",
}
"""The threads that can have a status, each from a partial index."""
