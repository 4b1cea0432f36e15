"""`load_settings`: find the file, lay environment and command line over it, check, validate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from pizzabot.settings import toml_file
from pizzabot.settings.checks import check_no_literal_secrets, check_shape
from pizzabot.settings.environment import environment_layer
from pizzabot.settings.explain import from_validation
from pizzabot.settings.layers import COMMAND_LINE, Layer, Merged, MergedSource, merge
from pizzabot.settings.locations import config_candidates, default_bundles_folder, default_data_root
from pizzabot.settings.model import Document
from pizzabot.settings.paths import put
from pizzabot.settings.positions import line_numbers
from pizzabot.settings.settings import Settings
from pizzabot_hookspecs.support.references import REFERENCE_KEYS


def load_settings(
    *,
    config: Path | None = None,
    environ: Mapping[str, str],
    cwd: Path,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of one process. `overrides` are the command line's, by dotted path; None means not given.

    Raises `InvalidRequest`: `config_not_found`, `config_unreadable`, `invalid_toml`, `unknown_setting`,
    `invalid_settings`, `literal_secret`, `invalid_reference`.
    """
    file, text, written = _read_file(config, environ, cwd)
    keys = _reference_keys(written)
    file_layer = _file_layer(file, text, written, keys)
    check_no_literal_secrets(written, merge([file_layer], keys), keys)
    environment = environment_layer(environ, written, keys)
    merged = merge([file_layer, environment, _override_layer(overrides or {})], keys)
    check_shape(merged)
    _make_data_root_absolute(merged, file, cwd)
    document = _validated(merged)
    return Settings(
        document=document, merged=merged, file=file, keys=keys,
        data_root=document.data_root or default_data_root(environ).absolute(),
        bundles_folder=default_bundles_folder(environ),
    )  # fmt: skip


def _read_file(config: Path | None, environ: Mapping[str, str], cwd: Path) -> tuple[Path | None, str, dict[str, Any]]:
    for candidate in config_candidates(config=config, environ=environ, cwd=cwd):
        if candidate.required or candidate.path.exists() or candidate.path.is_symlink():
            text = toml_file.read_text(candidate.path)
            return candidate.path, text, toml_file.parse(text, candidate.path)
    return None, "", {}


def _reference_keys(written: Mapping[str, Any]) -> frozenset[str]:
    """`env`, `keyring`, `file`, and the names of further stores in `[secrets] use`."""
    secrets = written.get("secrets")
    use = secrets.get("use") if isinstance(secrets, Mapping) else None
    names = use if isinstance(use, list) else []
    return REFERENCE_KEYS | {name.rpartition(":")[2] for name in names if isinstance(name, str)}


def _file_layer(file: Path | None, text: str, written: dict[str, Any], keys: frozenset[str]) -> Layer:
    lines: dict[tuple[str, ...], int] | None = None

    def source(path: tuple[str, ...]) -> str:
        nonlocal lines
        if lines is None:  # by need: most runs never say where a value is written
            lines = line_numbers(text, keys)
        number = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
        return f"file {file}" if number is None else f"file {file}:{number}"

    return Layer(values=written, source=source)


def _override_layer(overrides: Mapping[str, object]) -> Layer:
    values: dict[str, Any] = {}
    for path, value in overrides.items():
        if value is not None:
            put(values, tuple(path.split(".")), str(value) if isinstance(value, Path) else value)
    return Layer(values=values, source=lambda _: COMMAND_LINE)


def _make_data_root_absolute(merged: Merged, file: Path | None, cwd: Path) -> None:
    """A relative path in a file is meant from that file's folder, any other from the working folder."""
    value = merged.values.get("data_root")
    if isinstance(value, str) and value.strip():
        from_file = file is not None and merged.source(("data_root",)).startswith("file ")
        base = file.absolute().parent if file is not None and from_file else cwd.absolute()
        merged.values["data_root"] = str(base / Path(value.strip()).expanduser())


def _validated(merged: Merged) -> Document:
    class Loaded(Document):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: PydanticBaseSettingsSource, **__: PydanticBaseSettingsSource
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (MergedSource(settings_cls, merged.values),)

    try:
        return Loaded()
    except ValidationError as error:
        raise from_validation(error, merged) from error
