"""Where `pizzabot.toml` is looked for, and where data are kept when nobody says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE_NAME = "pizzabot.toml"


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """A place to look. `required` places were named by somebody: a file that is missing there is an error."""

    path: Path
    why: str
    required: bool = False


def config_candidates(*, config: Path | None, environ: Mapping[str, str], cwd: Path) -> list[ConfigFile]:
    """The places in the order in which they are tried. One that was named ends the search."""
    if config is not None:
        return [ConfigFile(path=cwd / config.expanduser(), why="--config", required=True)]
    if named := environ.get("PIZZABOT_CONFIG", "").strip():
        return [ConfigFile(path=cwd / Path(named).expanduser(), why="PIZZABOT_CONFIG", required=True)]
    return [
        ConfigFile(path=cwd / FILE_NAME, why="working folder"),
        ConfigFile(path=_user_config_dir(environ) / FILE_NAME, why="user configuration"),
    ]


def _user_config_dir(environ: Mapping[str, str]) -> Path:
    from platformdirs import user_config_path

    named = _absolute(environ.get("XDG_CONFIG_HOME"))
    return named / "pizzabot" if named else user_config_path("pizzabot", appauthor=False)


def default_bundles_folder(environ: Mapping[str, str]) -> Path:
    """The folder `plugins` beside the person's own configuration: bundles that are developed, linked or shared."""
    return _user_config_dir(environ) / "plugins"


def default_data_root(environ: Mapping[str, str]) -> Path:
    """`~/.local/share/pizzabot` on Linux, `~/Library/Application Support/pizzabot` on macOS; XDG_DATA_HOME moves it."""
    from platformdirs import user_data_path

    named = _absolute(environ.get("XDG_DATA_HOME"))
    return named / "pizzabot" if named else user_data_path("pizzabot", appauthor=False)


def _absolute(text: str | None) -> Path | None:
    """The XDG specification: a relative path is to be ignored."""
    path = Path(text) if text else None
    return path if path is not None and path.is_absolute() else None
