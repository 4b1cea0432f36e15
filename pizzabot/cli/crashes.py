"""Where the traceback of an unexpected error goes: the logs of the data root, where there is one."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pizzabot.cli.redaction import process_redactor
from pizzabot.logs.files import LogFiles
from pizzabot.logs.limits import LogLimits
from pizzabot.logs.records import Entry, to_line, to_record
from pizzabot.settings.locations import default_data_root


def save_traceback(error: BaseException) -> Path | None:
    """The file it was written to, or None. It never makes a data root: a crash is no reason for new folders."""
    named = os.environ.get("PIZZABOT_DATA_ROOT", "").strip()
    data_root = Path(named).expanduser() if named else default_data_root(os.environ)
    if not data_root.is_dir():
        return None
    entry = Entry(
        time=time.time(),
        level="error",
        component="cli",
        event="cli.crashed",
        message=f"unexpected {type(error).__name__}",
        facts={},
        error=error,
    )
    files = LogFiles(data_root / "logs", "cli", LogLimits.from_environment(os.environ))
    try:
        files.write(to_line(to_record(entry, process="cli", redactor=process_redactor())), entry.time)
    except OSError:
        return None
    files.close()
    return files.path
