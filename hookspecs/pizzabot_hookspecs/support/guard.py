"""Gone with the parent: `die_with_parent` for a Python child, and this file as the launcher of a foreign command.

The launcher (`python -I -S guard.py PARENT_PID COMMAND…`, put there by `processes.start(guarded=True)`) asks the kernel
to be killed with its parent and becomes the command; that wish survives exec. Small on purpose: it starts in 15 ms.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the thread that started it ends; leave at once if `parent` is gone.

    Linux only; elsewhere a child has to watch a pipe of its parent for end of file, as a good child does anyway.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def become(parent: int, command: list[str]) -> None:
    """Replace this process by `command`; exit code 127 and one line on stderr where there is no such program."""
    die_with_parent(parent)
    try:
        os.execvp(command[0], command)  # noqa: S606  a launcher: it becomes the command it was given
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
