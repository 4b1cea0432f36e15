"""Gone with the parent: `die_with_parent` for a Python child, and this file as the guard of a foreign command.

The guard (`python -I -S guard.py PARENT_PID COMMAND…`, put there by `processes.start(guarded=True)`) leads a process
group, starts the command in it and waits for two ends: the command's, which becomes its own, and the parent's, on which
it kills the group, grandchildren included. Small on purpose: it starts in 13 ms.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress

LOOK_SECONDS = 0.5
"""How often the guard looks for its parent where the system cannot tell it (no pidfd: macOS, Linux before 5.3)."""

LOOK_ANYWAY_SECONDS = 5.0
"""And where it can: a child that outlives its server is worse than a look every now and then."""

_PR_SET_PDEATHSIG = 1
_THE_COMMANDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Sent to the group they reach both; the guard has to outlive the command that they may end."""
_CHANGED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the thread that started it ends; leave at once if `parent` is gone.

    Linux only; elsewhere a child has to watch a pipe of its parent for end of file, as a good child does anyway.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def guard(parent: int, command: list[str]) -> None:
    """Run `command` and end as it ends; kill the whole group when `parent` ends before."""
    ending = _handle_of(parent)
    if os.getppid() != parent:
        os._exit(1)
    woken = _wake_on_children()
    signal.pthread_sigmask(signal.SIG_BLOCK, _THE_COMMANDS)  # one that comes now is the command's
    own = os.getpid()
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _THE_COMMANDS)
        _become(own, command)
    for number in _THE_COMMANDS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _THE_COMMANDS)
    _let_go_of_the_pipes()
    while True:
        if ending is None:
            select.select([woken], [], [], LOOK_SECONDS)
        else:
            select.select([woken, ending], [], [], LOOK_ANYWAY_SECONDS)
        with suppress(BlockingIOError):
            os.read(woken, 64)
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            _end_as(os.waitstatus_to_exitcode(status))


def _handle_of(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _wake_on_children() -> int:
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def _become(own: int, command: list[str]) -> None:
    """Replace the forked process by `command`; 127 and one line on stderr where there is no such program."""
    die_with_parent(own)
    for name in _CHANGED_BY_PYTHON:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606  a launcher: it becomes the command it was given
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(127)


def _let_go_of_the_pipes() -> None:
    """Who reads what the command says has to see it end with the command."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)


def _end_as(code: int) -> None:
    if code >= 0:
        os._exit(code)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left its own
    with suppress(OSError):  # KILL and STOP have no disposition
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(128 - code)  # a signal that does not end a process


if __name__ == "__main__":
    guard(int(sys.argv[1]), sys.argv[2:])
