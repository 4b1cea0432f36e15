"""The table of built-in commands. A command is the name of a module, imported when it is run.

Such a module has `arguments(parser)` and `run(arguments) -> int`. What it raises is turned into the last line of
standard error and an exit code by `pizzabot.cli.failures`. `arguments.no_plugins` and `.debug` are always there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Protocol

    class CommandModule(Protocol):
        def arguments(self, parser: ArgumentParser, /) -> None: ...

        def run(self, arguments: Namespace, /) -> int: ...


COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("start the server", "pizzabot.cli.serve"),
    "chat": ("talk to a running server", "pizzabot.cli.chat"),
    "plugins": ("list plugins: state, source, offers, or why one is not loaded", "pizzabot.cli.plugins"),
    "config": ("show, find and check the configuration", "pizzabot.cli.config"),
    "secrets": ("set, list and delete secrets", "pizzabot.cli.secrets"),
    "doctor": ("check what is stored; --rebuild makes transcripts anew", "pizzabot.cli.doctor"),
    "help": ("help on a command; --all lists plugins' commands too", "pizzabot.cli.help"),
}
"""name -> (summary, module), in the order in which `--help` shows them."""


def overview() -> str:
    """The text of `pizzabot --help`. Written from the table, without loading a plugin or the settings."""
    lines = [f"  {name:<10} {summary}" for name, (summary, _) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: pizzabot [--version] [--help] [--no-plugins] [--debug] COMMAND …",
            "",
            "One stateful assistant that you own.",
            "",
            "commands:",
            *lines,
            "",
            "Plugins add commands, such as `pizzabot models`: `pizzabot help --all` lists them.",
            "`pizzabot COMMAND --help` explains one.",
            "",
            "options:",
            "  --version     print the version",
            "  --no-plugins  leave out plugins that were installed (as PIZZABOT_NO_PLUGINS=1 does)",
            "  --debug       show the traceback of an error (as PIZZABOT_DEBUG=1 does)",
        ]
    )
