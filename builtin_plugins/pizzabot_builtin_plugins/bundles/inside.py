"""Paths that a bundle names: placeholders for its folder filled in, and never out of it, links included (case 45)."""

from __future__ import annotations

import os
from pathlib import Path

from pizzabot_builtin_plugins.bundles.faults import BundleFaultError
from pizzabot_builtin_plugins.bundles.json_files import JsonFile
from pizzabot_hookspecs.support.paths import MAX_PATH_BYTES

ROOT_PLACEHOLDERS = ("${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}")
MAX_NESTING = 32
"""Of the values of an MCP server's entry."""


def with_root(text: str, root: Path) -> str:
    """`text` with the bundle's folder for its placeholders; other `${NAME}` stay references."""
    for placeholder in ROOT_PLACEHOLDERS:
        text = text.replace(placeholder, str(root))
    return text


def filled_in(value: object, root: Path, depth: int = 0) -> object:
    """The same in every nested text. Raises `RecursionError` where it is nested too deep."""
    if depth > MAX_NESTING:
        raise RecursionError
    if isinstance(value, str):
        return with_root(value, root)
    if isinstance(value, list):
        return [filled_in(item, root, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: filled_in(item, root, depth + 1) for key, item in value.items()}
    return value


def inside(root: Path, written: str, *, said: JsonFile, keys: tuple[str, ...]) -> Path:
    """The real path of what `written` names; `root` is a real path. Raises `BundleFaultError` at those keys.

    Relative ones begin at `root`; an absolute one counts where it leads into it, through whatever links above it.
    """
    shown = repr(written[:120])
    if not written.strip() or "\0" in written or len(written.encode(errors="replace")) > MAX_PATH_BYTES:
        raise said.fault(f"{shown} is no path", *keys)
    try:
        real = Path(os.path.realpath(root / with_root(written, root)))
        if not real.is_relative_to(root):
            raise said.fault(f"{shown} leads out of the bundle's folder", *keys)
        if not real.exists():
            raise said.fault(f"there is no {shown} in the bundle", *keys)
    except (OSError, RuntimeError, ValueError) as error:
        raise said.fault(f"{shown} cannot be followed: {error}", *keys) from error
    return real


def own_file(root: Path, name: str) -> Path | None:
    """The file `name` of the bundle, None where there is none. Raises `BundleFaultError` where it leads out."""
    path = root / name
    if not os.path.lexists(path):
        return None
    if not Path(os.path.realpath(path)).is_relative_to(root):
        raise BundleFaultError("it is a link that leads out of the bundle's folder", file=name)
    return path
