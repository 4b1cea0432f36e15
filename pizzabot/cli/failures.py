"""What went wrong as one line, the last of standard error, and an exit code. Secrets redacted, tracebacks by wish."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress

from pizzabot.cli.exit_codes import ExitCode, exit_code_of
from pizzabot.cli.streams import OutputError

_MAX_CHARS = 2_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def say(text: str) -> None:
    """`pizzabot: text` on standard error, one line whatever `text` holds."""
    line = _CONTROL.sub(" ", text).strip()
    line = line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1]}…"
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # must not keep the line back
        _give_up_output()
    with suppress(OSError, ValueError):  # standard error may be closed, too
        print(f"pizzabot: {line}", file=sys.stderr, flush=True)


def guarded(action: Callable[[], int], *, debug: bool = False) -> int:
    """Run a command. Never raises: the exit code says how it ended."""
    try:
        code = int(action())
        sys.stdout.flush()
    except KeyboardInterrupt:
        say("interrupted")
        return ExitCode.INTERRUPTED
    except SystemExit as stop:
        return _exit_code(stop)
    except Exception as error:  # noqa: BLE001 - the last stop before the interpreter's own traceback
        if isinstance(error, BrokenPipeError) and _standard_output_is_gone():
            return ExitCode.OK
        return _failed(error, debug=debug or os.environ.get("PIZZABOT_DEBUG", "").strip() not in {"", "0"})
    return code


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or ExitCode.OK
    say(str(stop.code))
    return ExitCode.FAILED


def _standard_output_is_gone() -> bool:
    """Whoever read our output has enough (`| head`); a broken connection elsewhere raises the same error and is one."""
    import select

    watch = select.poll()
    try:
        watch.register(sys.stdout.fileno(), 0)
        gone = any(events & (select.POLLERR | select.POLLHUP) for _, events in watch.poll(0))
    except (OSError, ValueError):
        gone = False
    if gone:
        _give_up_output()
    return gone


def _give_up_output() -> None:
    """What is still buffered goes nowhere, or the interpreter complains about it at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def output_failed(error: OSError) -> int:
    """Nobody gets what a command has to say."""
    _give_up_output()
    say(f"standard output cannot be written: {error.strerror}")
    return ExitCode.FAILED


def _failed(error: Exception, *, debug: bool) -> int:
    from pizzabot.cli.redaction import process_redactor
    from pizzabot_hookspecs.errors import PizzabotError

    redact = process_redactor()
    if debug:
        import traceback

        with suppress(OSError, ValueError):
            print(redact("".join(traceback.format_exception(error))), file=sys.stderr, end="")
    if isinstance(error, PizzabotError):
        say(f"{redact(error.detail)} [{error.code}]")
        return exit_code_of(error.code)
    if isinstance(error, OutputError):
        return output_failed(error)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        place = f" for {error.filename}" if error.filename else ""
        say(f"there is no room on the disk{place} ({error.strerror}): make some, or choose another --data-root")
        return ExitCode.TAKEN
    say(redact(f"unexpected {type(error).__name__}: {error or 'no message'}; {_where(error, debug=debug)}"))
    return ExitCode.FAILED


def _where(error: Exception, *, debug: bool) -> str:
    if debug:
        return "the traceback is above"
    from pizzabot.cli.crashes import save_traceback

    path = save_traceback(error)
    return f"the traceback is in {path}" if path else "--debug shows the traceback"
