"""Commands that plugins offer: found by name when a word is not built-in, listed by `pizzabot help --all`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pizzabot.cli.arguments import Parser, add_common_options, add_settings_options, settings_of
from pizzabot.cli.commands import COMMANDS
from pizzabot.cli.context import load_plugins, make_context, secrets_of
from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.failures import say

if TYPE_CHECKING:
    from pizzabot.kernel import OfferRecord, Plugins
    from pizzabot_hookspecs.commands import Command


def plugin_commands(plugins: Plugins) -> dict[str, OfferRecord]:
    """By name; one that is called like a built-in command is not reached, and not listed."""
    return {record.offer.name: record for record in plugins.acting("commands") if record.offer.name not in COMMANDS}


def run_plugin_command(name: str, words: list[str]) -> int:
    """`--config`, `--data-root` and the common options are the host's; all others are the command's own."""
    shared = Parser(add_help=False)
    add_common_options(shared)
    add_settings_options(shared)
    settings = settings_of(shared.parse_known_args(words)[0])
    plugins = load_plugins(settings)
    record = plugin_commands(plugins).get(name)
    if record is None:
        say(_unknown(name, plugins))
        return ExitCode.USAGE
    command = cast(
        "Command",
        plugins.create(
            record,
            use=name,
            section=settings.section("commands", name),
            context=lambda use, inner: make_context(settings, use, inner, secrets_of(settings, plugins)),
        ),
    )
    parser = Parser(prog=f"pizzabot {name}", description=record.offer.summary)
    add_common_options(parser)
    add_settings_options(parser)
    command.arguments(parser)
    return command.run(parser.parse_args(words))


def _unknown(name: str, plugins: Plugins) -> str:
    from difflib import get_close_matches

    known = [*COMMANDS, *plugin_commands(plugins)]
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean `pizzabot {close[0]}`?" if close else f"there are {', '.join(known)}"
    broken = [report.name for report in plugins.report() if report.state.broken]
    also = f" (not loaded: {', '.join(broken)}; see `pizzabot plugins`)" if broken else ""
    return f"unknown command {name!r}: {hint}{also}"
