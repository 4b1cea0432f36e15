"""`main`: the options that every command has, then the command itself.

`--version` and `--help` need neither argparse nor a plugin: `pizzabot --version` is to cost at most 2.5 times an empty
interpreter (architecture §6), and argparse alone takes 1.8.
"""

from __future__ import annotations

import sys

from pizzabot import __version__

TYPE_CHECKING = False  # `typing` itself would be a third of the time of --version
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (`pizzabot.cli.exit_codes`). Never raises."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        try:
            print(f"pizzabot {__version__}", flush=True)
        except OSError as error:
            from pizzabot.cli.failures import output_failed

            return output_failed(error)
        return 0
    from pizzabot.cli.dispatch import dispatch
    from pizzabot.cli.failures import guarded
    from pizzabot.cli.streams import prepare

    listened = prepare()
    return guarded(lambda: dispatch(words, listened=listened), debug="--debug" in words)
