"""`pizzabot plugins`: what is loaded, what is not and why; `show NAME` has a plugin's offers and their settings.

It runs with everything broken: a plugin, the metadata of a distribution, the configuration. Nothing is created by it
but what reads bundles.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pizzabot.cli.arguments import add_action, add_settings_options, settings_of
from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.failures import say
from pizzabot.cli.plugin_bundles import bundle_rows
from pizzabot.cli.redaction import process_redactor
from pizzabot_hookspecs.errors import NotFound, PizzabotError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from pizzabot.kernel import OfferRecord, PluginReport, Plugins
    from pizzabot.settings import Settings

LONGEST_TRACEBACK = 60
"""Lines of a failed plugin's traceback that `show` prints, the last ones."""
DEEPEST_SETTING = 3
"""Levels of nested settings models that are shown field by field; what lies below is shown as one field."""

_COLUMNS = ("NAME", "STATE", "FROM", "MS", "OFFERS OR REASON", "STANDS IN FOR")
_BUNDLE_COLUMNS = ("BUNDLE", "STATE", "VERSION", "SKILLS", "SERVERS", "DETAIL")
_FIELD_COLUMNS = ("FIELD", "TYPE", "DEFAULT", "FROM", "DESCRIPTION")
_BROKEN_BUNDLES = ("failed", "incompatible")
_STYLES = {"loaded": "green", "disabled": "dim", "incompatible": "yellow", "failed": "bold red"}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_settings_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON with stable keys")
    actions = parser.add_subparsers(dest="action", metavar="show NAME")
    show = add_action(actions, "show", "one plugin: its offers, their settings and where each value comes from")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON with stable keys")


def run(args: argparse.Namespace) -> int:
    """0; 1 when a plugin or a bundle is failed or incompatible; 3 when the configuration cannot be read.

    Raises `NotFound` `no_such_plugin` for `show` of a name that nothing has.
    """
    settings, trouble = _settings(args)
    with redirect_stdout(sys.stderr):  # a plugin that prints while it is imported must not break the JSON
        plugins = _load(settings, discover=not args.no_plugins)
        listed = settings is not None and args.action != "show"
        bundles, unread = bundle_rows(settings, plugins) if listed and settings is not None else ([], "")
    if args.action == "show":
        shown = _named(plugins, args.name)
        _show(plugins, shown, settings, as_json=args.json)
    else:
        shown = _reports(plugins)
        _list(shown, bundles, _notes(plugins, trouble, unread), as_json=args.json)
    if trouble:
        say(trouble)
        return ExitCode.CONFIGURATION
    broken = [report for report in shown if report.state.broken]
    if broken:
        names = ", ".join(f"{report.name} ({report.state.value})" for report in broken)
        way_out = f'see "pizzabot plugins show {broken[0].name}", or list it in [plugins] disable'
        say(f"{len(broken)} of {len(shown)} plugins cannot be used as installed: {names}; {way_out}")
    wrong = [f"{row['name']} ({row['status']})" for row in bundles if row["status"] in _BROKEN_BUNDLES]
    if wrong:
        say(f"{len(wrong)} of {len(bundles)} bundles cannot be used: {', '.join(wrong)}; the list says why")
    return ExitCode.FAILED if broken or wrong else ExitCode.OK


def _settings(args: argparse.Namespace) -> tuple[Settings | None, str]:
    """The settings, or None and why there are none."""
    try:
        return settings_of(args), ""
    except PizzabotError as error:
        return None, error.detail


def _load(settings: Settings | None, *, discover: bool) -> Plugins:
    """As the host loads them, but never strict: the list is what one looks at when strict has refused."""
    from pizzabot.kernel import Plugins

    if settings is None:
        return Plugins(discover=discover).load()
    chosen = settings.plugins
    return Plugins(disable=chosen.disable, only=chosen.only, discover=chosen.discover).load()


def _reports(plugins: Plugins) -> list[PluginReport]:
    return [replace(report, reason=_foreign(report.reason or "") or None) for report in plugins.report()]


def _named(plugins: Plugins, name: str) -> list[PluginReport]:
    found = [report for report in _reports(plugins) if report.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(report.name for report in plugins.report()))
        raise NotFound("no_such_plugin", f'no plugin is called "{name}"; there are: {names}')
    return found


def _notes(plugins: Plugins, trouble: str, unread: str) -> list[str]:
    left_out = f"the configuration is left out, since it cannot be read: {trouble}" if trouble else ""
    return [_foreign(note) for note in (left_out, *plugins.notes(), unread) if note]


def _list(
    plugins: Sequence[PluginReport],
    bundles: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    *,
    as_json: bool,
) -> None:
    if as_json:
        told = {"plugins": [report.to_json() for report in plugins], "notes": notes, "bundles": bundles}
        print(json.dumps(told, indent=2))
        return
    _table(_COLUMNS, [_row(report) for report in plugins], styles=[_STYLES[report.state.value] for report in plugins])
    if bundles:
        _write("")
        rows = [_bundle_row(row) for row in bundles]
        _table(_BUNDLE_COLUMNS, rows, styles=[_STYLES[row["status"]] for row in bundles])
    for note in notes:
        _write(f"note: {note}")


def _bundle_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    counts = row["contributions"]
    return (
        _foreign(row["name"]),
        row["status"],
        _foreign(row.get("version", "")),
        str(counts["skills"]),
        str(counts["mcpServers"]),
        _foreign(row.get("detail", "")),
    )


def _row(report: PluginReport) -> tuple[str, ...]:
    offers = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in report.offers.items())
    told = f"{report.reason} (still offers {offers})" if report.reason and offers else report.reason or offers
    time = f"{report.ms:.0f}" + (" slow" if report.slow else "")
    return (report.name, report.state.value, _source(report), time, told, ", ".join(report.stands_in_for))


def _source(report: PluginReport) -> str:
    if report.builtin:
        return "built-in"
    return f"{report.distribution} {report.version or '(version unknown)'}" if report.distribution else report.module


def _show(plugins: Plugins, reports: Sequence[PluginReport], settings: Settings | None, *, as_json: bool) -> None:
    offered = [[_offer(record, settings) for record in _records(plugins, report)] for report in reports]
    if as_json:
        pairs = zip(reports, offered, strict=True)
        shown = [{**report.to_json(), "offered": offers} for report, offers in pairs]
        print(json.dumps({"plugins": shown}, indent=2))
        return
    for report, offers in zip(reports, offered, strict=True):
        _show_plugin(report)
        for offer in offers:
            _show_offer(offer)
        error = plugins.error_of(report.name)
        if error is not None:
            lines = "".join(traceback.format_exception(error)).splitlines()
            _write("\n" + "\n".join(_foreign(line) for line in lines[-LONGEST_TRACEBACK:]))


def _records(plugins: Plugins, report: PluginReport) -> list[OfferRecord]:
    return [record for kind in report.offers for record in plugins.offers(kind) if record.plugin == report.name]


def _show_plugin(report: PluginReport) -> None:
    _write(f"{report.name}: {report.state.value}" + (f": {report.reason}" if report.reason else ""))
    _write(f"  from {_source(report)}, module {report.module}, {report.ms:.0f} ms" + (" (slow)" if report.slow else ""))
    for replaced in report.stands_in_for:
        _write(f"  stands in for {replaced}")


def _show_offer(offer: Mapping[str, Any]) -> None:
    _write(f"\n{offer['kind']}: {offer['qualified']}\n  {offer['summary']}")
    if offer["extra"]:
        _write(f"  optional packages: {offer['extra']}")
    for use in offer["uses"]:
        _write(f"\n  [{use['section']}]")
        rows = [
            (field["field"], field["type"], field["default"], field["source"], field["description"])
            for field in use["settings"]
        ]
        _table(_FIELD_COLUMNS, rows, indent="  ")


def _offer(record: OfferRecord, settings: Settings | None) -> dict[str, Any]:
    """`uses` has one entry per section of the configuration that the offer is handed; none when it has no settings."""
    model = record.offer.settings
    extra = f'pip install "{record.extra_of}[{record.offer.extra}]"' if record.offer.extra else None
    return {
        "kind": record.kind,
        "name": record.offer.name,
        "qualified": record.qualified,
        "summary": _foreign(record.offer.summary),
        "extra": extra,
        "uses": [
            {"section": section, "settings": list(_fields(model, section, settings))}
            for section in _sections(record, settings)
        ]
        if model
        else [],
    }


def _sections(record: OfferRecord, settings: Settings | None) -> list[str]:
    from pizzabot.settings.model import SECTION_OF_KIND

    uses: list[str] = []
    if settings is not None and record.kind == "model_providers":
        wanted = (record.offer.name, record.qualified)
        uses = [use for use, offer in settings.models.uses.items() if offer in wanted]
    return [f"{SECTION_OF_KIND[record.kind]}.{use}" for use in uses or [record.offer.name]]


def _fields(
    model: type[BaseModel], section: str, settings: Settings | None, prefix: str = ""
) -> Iterator[dict[str, Any]]:
    """The settings of an offer as rows, those of a nested model with dotted names.

    A value is never shown, only where it is from: it may be a secret.
    """
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        nested = field.annotation
        if isinstance(nested, type) and hasattr(nested, "model_fields") and prefix.count(".") < DEEPEST_SETTING:
            yield from _fields(nested, section, settings, f"{key}.")
            continue
        yield {
            "field": key,
            "type": _type(field.annotation),
            "default": _default(field),
            "required": field.is_required(),
            "description": _foreign(field.description or ""),
            "source": settings.provenance(f"{section}.{key}") if settings is not None else "default",
        }


def _type(annotation: object) -> str:
    """As a person writes it: `list[str] | None`, and the choices of an enum or a literal."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(inner[0])
    if origin in (Union, UnionType):
        return " | ".join(_type(choice) for choice in inner)
    if origin is Literal:
        return " | ".join(repr(choice) for choice in inner)
    if origin is not None and annotation is not Ellipsis:
        return f"{_type(origin)}[{', '.join('...' if part is Ellipsis else _type(part) for part in inner)}]"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " | ".join(repr(member.value) for member in annotation)
    if annotation is NoneType:
        annotation = None
    return annotation.__name__ if isinstance(annotation, type) else _foreign(str(annotation))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "computed"
    return _foreign(repr(field.default.value if isinstance(field.default, Enum) else field.default))


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Sequence[str] = (), indent: str = ""
) -> None:
    """Aligned columns: folded and coloured on a terminal, else plain and uncut, one line a row."""
    used = [n for n, title in enumerate(columns) if n == 0 or any(row[n] for row in rows)]
    if sys.stdout.isatty():
        _terminal_table([columns[n] for n in used], [[row[n] for n in used] for row in rows], styles, len(indent))
        return
    lines = [[columns[n] for n in used], *([row[n] for n in used] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(used))]
    for line in lines:
        _write(indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _terminal_table(columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], indent: int) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, title in enumerate(columns):
        table.add_column(title, overflow="fold", no_wrap=number == 0)
    for number, row in enumerate(rows):
        style = styles[number] if styles else ""
        table.add_row(*(Text(cell, style=style if at == 1 else "") for at, cell in enumerate(row)))  # Text: no markup
    Console().print(Padding(table, (0, 0, 0, indent)))  # honours NO_COLOR


def _foreign(text: str) -> str:
    """A plugin's text: without what a terminal would obey, and without secrets that it read from the environment."""
    redacted = process_redactor()(text)
    return "".join(character if character.isprintable() else " " for character in redacted)


def _write(text: str) -> None:
    """Never fails for want of a character."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
