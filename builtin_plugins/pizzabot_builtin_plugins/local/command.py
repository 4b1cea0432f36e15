"""`pizzabot models`: which models this machine has, fetching one, removing one."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pizzabot_builtin_plugins.local.files import (
    MAX_BYTES,
    install_path,
    install_url,
    is_file_path,
    is_url,
    shown_address,
)
from pizzabot_builtin_plugins.local.known import KNOWN
from pizzabot_builtin_plugins.local.library import Library, LibraryModel, checked_name
from pizzabot_builtin_plugins.local.progress import shown
from pizzabot_builtin_plugins.local.settings import default_folder
from pizzabot_builtin_plugins.local.weights import install_known
from pizzabot_hookspecs import InvalidRequest

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


class ModelsCommand:
    """`list` (also without a word), `install NAME|PATH|URL`, `remove NAME`.

    The folder is `PIZZABOT_MODELS_DIR`, else the user's cache.
    """

    def arguments(self, parser: ArgumentParser, /) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        listing = actions.add_parser("list", help="installed models, and those that can be installed by name")
        listing.add_argument("--json", action="store_true", help="for programs")
        install = actions.add_parser("install", help="fetch a known model by name, or add a GGUF file")
        install.add_argument("source", metavar="NAME|PATH|URL", help=f"known names: {', '.join(KNOWN)}")
        install.add_argument("--name", help="the name to use it by (default: the file's)")
        install.add_argument("--sha256", help="of the file at the URL; anything else is refused")
        install.add_argument("--link", action="store_true", help="link to the file instead of copying it")
        install.add_argument(
            "--max-gb",
            type=float,
            default=MAX_BYTES / 1e9,
            metavar="GB",
            help="largest file to fetch (default: %(default)g)",
        )
        remove = actions.add_parser("remove", help="delete an installed model")
        remove.add_argument("name", metavar="NAME")

    def run(self, arguments: Namespace, /) -> int:
        library = Library(default_folder())
        if arguments.action in (None, "list"):
            _write(_json(library) if getattr(arguments, "json", False) else _table(library))
        elif arguments.action == "remove":
            _write(f"removed {library.remove(arguments.name)}")
        else:
            path = asyncio.run(_install(arguments, library))
            _write(
                f"installed {path}\nUse it as local:{path.stem}, for example: pizzabot serve --model local:{path.stem}"
            )
        return 0


async def _install(arguments: Namespace, library: Library) -> Path:
    source: str = arguments.source
    if arguments.sha256 and not is_url(source):
        raise InvalidRequest("invalid_option", "--sha256 is for URLs; the hash of a known model is pinned anyway")
    if arguments.link and (is_url(source) or not is_file_path(source)):
        raise InvalidRequest("invalid_option", "--link is for a file on this machine")
    if is_url(source):
        with shown(shown_address(source)) as progress:
            return await install_url(
                source, library, progress,
                name=arguments.name, sha256=arguments.sha256, max_bytes=int(arguments.max_gb * 1e9),
            )  # fmt: skip
    if is_file_path(source):
        return await install_path(Path(source), library, name=arguments.name, link=arguments.link)
    name = checked_name(source)
    if name not in KNOWN:
        raise InvalidRequest(
            "unknown_model",
            f"no model {name!r} is known; there are: {', '.join(KNOWN)}. Or give a path or a URL of a GGUF file",
        )
    if arguments.name:
        raise InvalidRequest("invalid_option", "--name is for paths and URLs; a known model keeps its name")
    with shown(f"{KNOWN[name].display_name} ({KNOWN[name].licence})") as progress:
        return await install_known(KNOWN[name], library.folder, progress)


def _json(library: Library) -> str:
    models = [_facts(model) for model in library.models()]
    return json.dumps({"folder": str(library.folder), "models": models}, indent=2)


def _facts(model: LibraryModel) -> dict[str, Any]:
    descriptor = model.descriptor(context_size=sys.maxsize)
    return {
        "id": f"local:{model.name}",
        "name": model.name,
        "displayName": descriptor.display_name,
        "installed": model.path is not None,
        "known": model.known is not None,
        "sizeBytes": model.size,
        "path": None if model.path is None else str(model.path),
        "contextWindow": descriptor.context_window,
        "supportsTools": descriptor.supports_tools,
        "licence": model.known.licence if model.known else None,
        "problem": model.problem,
    }


def _table(library: Library) -> str:
    rows = [("NAME", "SIZE", "CONTEXT", "TOOLS", "WHERE")]
    for model in library.models():
        facts = _facts(model)
        tools = {True: "yes", False: "no", None: "?"}[facts["supportsTools"]]
        where = model.problem or facts["path"] or f"not installed: pizzabot models install {model.name}"
        rows.append(
            (f"local:{model.name}", f"{model.size / 1e6:.0f} MB", str(facts["contextWindow"] or "?"), tools, where)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]) for row in rows
    ]
    return "\n".join(lines)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
