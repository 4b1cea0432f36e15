"""The parser of every command, whose errors end in one `pizzabot: …` line, and the options that commands share."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.failures import say

if TYPE_CHECKING:
    from pizzabot.settings import Settings

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse has no public name for it


class Parser(argparse.ArgumentParser):
    """No abbreviations: a new option would change what an old script means."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "conflict_handler": "resolve", **options})

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        say(f"{message}; see `{self.prog} --help`")
        self.exit(ExitCode.USAGE)


def add_common_options(parser: argparse.ArgumentParser, *, after: bool = False) -> None:
    """Every command has these. `after`: for a word below a command, whose defaults must not undo what stood before."""
    off: Any = argparse.SUPPRESS if after else False
    parser.add_argument("--no-plugins", action="store_true", default=off, help="leave out plugins that were installed")
    parser.add_argument("--debug", action="store_true", default=off, help="show the traceback of an error")


def add_settings_options(parser: argparse.ArgumentParser, *, after: bool = False) -> None:
    """For commands that read the configuration."""
    none: Any = argparse.SUPPRESS if after else None
    parser.add_argument(
        "--config", type=Path, default=none, metavar="FILE", help="the configuration; see `pizzabot config path`"
    )
    parser.add_argument("--data-root", type=Path, default=none, metavar="DIR", help="where data are kept")


def add_action(actions: Actions, name: str, summary: str) -> argparse.ArgumentParser:
    """A word below a command (`config show`), after which the command's options count as well as before it."""
    action = actions.add_parser(name, help=summary, description=summary[:1].upper() + summary[1:] + ".")
    add_common_options(action, after=True)
    add_settings_options(action, after=True)
    return action


_OVERRIDES = {
    "data_root": "data_root",
    "host": "transports.http.host",
    "port": "transports.http.port",
    "model": "models.default",
}


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings of this command. Raises what `load_settings` raises.

    `--config`, `--data-root`, `--host`, `--port`, `--model` and `--no-plugins` count where a command has them.
    """
    from pizzabot.settings import load_settings

    given = {path: getattr(arguments, name, None) for name, path in _OVERRIDES.items()}
    if getattr(arguments, "no_plugins", False):
        given["plugins.discover"] = False
    config = getattr(arguments, "config", None)
    return load_settings(config=config, environ=os.environ, cwd=Path.cwd(), overrides=given)
