"""`pizzabot help [COMMAND] [--all]`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pizzabot.cli.arguments import add_settings_options, settings_of
from pizzabot.cli.commands import overview
from pizzabot.cli.exit_codes import ExitCode


def arguments(parser: ArgumentParser) -> None:
    add_settings_options(parser)
    parser.add_argument("command", nargs="?", help="the command to explain")
    parser.add_argument("--all", action="store_true", help="load plugins and list their commands, too")


def run(arguments: Namespace) -> int:
    if arguments.command:
        from pizzabot.cli.dispatch import run_command

        return run_command(arguments.command, ["--help"])
    print(overview())
    if arguments.all:
        _print_plugin_commands(arguments)
    return ExitCode.OK


def _print_plugin_commands(arguments: Namespace) -> None:
    from pizzabot.cli.context import load_plugins
    from pizzabot.cli.plugin_commands import plugin_commands

    found = plugin_commands(load_plugins(settings_of(arguments)))
    print("\ncommands of plugins:")
    for name, record in sorted(found.items()):
        print(f"  {name:<10} {record.offer.summary} ({record.plugin})")
    if not found:
        print("  none")
