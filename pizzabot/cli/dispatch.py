"""From words to a command: options before it, the table of built-ins, then the commands of plugins."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, cast

from pizzabot import __version__
from pizzabot.cli.arguments import Parser, add_common_options
from pizzabot.cli.commands import COMMANDS, overview
from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.failures import say

if TYPE_CHECKING:
    from pizzabot.cli.commands import CommandModule

_FLAGS = ("--no-plugins", "--debug")


def dispatch(words: list[str], *, listened: bool = True) -> int:
    """Run what `words` ask for. `--no-plugins` and `--debug` count before and after the command.

    `listened` is whether standard output is open: only a server has something to do without one.
    """
    before = []
    while words and words[0].startswith("-"):
        option, *words = words
        if option in {"--help", "-h"}:
            print(overview())
            return ExitCode.OK
        if option == "--version":
            print(f"pizzabot {__version__}")
            return ExitCode.OK
        if option not in _FLAGS:
            say(f"unknown option {option}; see `pizzabot --help`")
            return ExitCode.USAGE
        before.append(option)
    if not words:
        print(overview(), file=sys.stderr)
        say("no command given; try `pizzabot serve`, or `pizzabot chat` beside it")
        return ExitCode.USAGE
    if not listened and words[0] != "serve":
        say("standard output is closed: there is nowhere to write to")
        return ExitCode.FAILED
    return run_command(words[0], [*before, *words[1:]])


def run_command(name: str, words: list[str]) -> int:
    """`words` follow the command's name. A name that is not in the table is looked for among plugins' commands."""
    if name not in COMMANDS:
        from pizzabot.cli.plugin_commands import run_plugin_command

        return run_plugin_command(name, words)
    summary, module_name = COMMANDS[name]
    module = cast("CommandModule", importlib.import_module(module_name))
    parser = Parser(prog=f"pizzabot {name}", description=summary[:1].upper() + summary[1:] + ".")
    add_common_options(parser)
    module.arguments(parser)
    return module.run(parser.parse_args(words))
