"""`pizzabot config show|path|check`: what applies and where it comes from, which file is read, whether it all holds."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pizzabot.cli.arguments import add_action, add_settings_options, settings_of
from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.failures import say
from pizzabot.cli.redaction import process_redactor
from pizzabot_hookspecs.support.redaction import REDACTED, names_a_secret
from pizzabot_hookspecs.support.references import parse_reference

if TYPE_CHECKING:
    from pizzabot.settings import Settings
    from pizzabot.settings.settings import SettingValue


def arguments(parser: ArgumentParser) -> None:
    add_settings_options(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|path|check")
    show = add_action(actions, "show", "print every value with where it comes from; secrets never")
    show.add_argument("--json", action="store_true", help="for programs")
    add_action(actions, "path", "print which file is read, and where files are looked for")
    add_action(actions, "check", "check whether settings, plugins and secrets fit together")


def run(arguments: Namespace) -> int:
    if arguments.action == "path":
        return _path(arguments.config)
    settings = settings_of(arguments)
    if arguments.action == "check":
        return _check(settings)
    return _show_json(settings) if arguments.json else _show(settings)


def _show(settings: Settings) -> int:
    from pizzabot.cli.effective import effective_values
    from pizzabot.settings.paths import dotted

    values, trouble = effective_values(settings)
    print(f"# {settings.file or 'no configuration file'}")
    if trouble:
        print(f"# without the settings of plugins: {process_redactor()(trouble)}")
    for setting in values:
        print(f"{dotted(setting.path)} = {_text(shown(setting, settings))}  # {setting.source}")
    return ExitCode.OK


def _show_json(settings: Settings) -> int:
    from pizzabot.cli.effective import effective_values
    from pizzabot.settings.paths import dotted

    values = [
        {"path": dotted(setting.path), "value": shown(setting, settings), "source": setting.source}
        for setting in effective_values(settings)[0]
    ]
    print(json.dumps({"file": str(settings.file) if settings.file else None, "values": values}, indent=2))
    return ExitCode.OK


def shown(setting: SettingValue, settings: Settings) -> Any:
    """The value as it may be printed: a reference as written, a secret as `<redacted>`."""
    if parse_reference(setting.value, keys=settings.keys) is not None:
        return setting.value
    if setting.value is None:
        return None
    if names_a_secret(setting.path[-1]) and isinstance(setting.value, str | list) and setting.path[0] != "secrets":
        return REDACTED
    return process_redactor().structure(setting.value)


def _text(value: Any) -> str:
    if isinstance(value, dict):  # a reference, as TOML writes it
        return "{" + ", ".join(f"{key} = {json.dumps(inner, ensure_ascii=False)}" for key, inner in value.items()) + "}"
    return "(not set)" if value is None else json.dumps(value, ensure_ascii=False)


def _path(config: Path | None) -> int:
    """Says what is used without reading it: it also has to help when the file is broken."""
    from pizzabot.settings import config_candidates

    candidates = config_candidates(config=config, environ=os.environ, cwd=Path.cwd())
    used = next((place.path for place in candidates if place.path.exists()), None)
    print(used or "no configuration file: defaults and the environment apply")
    print("looked for, in this order (--config, then PIZZABOT_CONFIG, end the search):")
    for place in candidates:
        print(f"  {'*' if place.path == used else ' '} {place.path}  ({place.why})")
    if used is None and candidates[0].required:
        say(f"configuration {candidates[0].path} does not exist")
        return ExitCode.CONFIGURATION
    return ExitCode.OK


def _check(settings: Settings) -> int:
    from pizzabot.cli.config_check import check

    redact = process_redactor()
    problems, notes = check(settings)
    for note in notes:
        print(f"note: {note}")
    if not problems:
        print(f"ok: {settings.file or 'no configuration file'}")
        return ExitCode.OK
    for problem in problems[1:]:
        print(f"problem: {redact(problem)}")
    more = f" (and {len(problems) - 1} more, see above)" if len(problems) > 1 else ""
    say(redact(f"{problems[0]}{more}"))
    return ExitCode.CONFIGURATION
