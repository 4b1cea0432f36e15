"""What is wrong with the shape of the values: unknown sections and keys, with the one that was probably meant, and
secrets that were written into the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from pizzabot.settings.layers import Merged
from pizzabot.settings.model import Document, KindSection
from pizzabot.settings.paths import Path, dotted, leaves
from pizzabot_hookspecs.errors import InvalidRequest
from pizzabot_hookspecs.support.redaction import names_a_secret
from pizzabot_hookspecs.support.references import parse_reference

_RESERVED = ("default", "fallback", "use")
_USE_OF_MODELS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PASSWORD_IN_URL = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def check_shape(merged: Merged) -> None:
    """Raises `InvalidRequest`: `unknown_setting` for a section or key that nothing reads, `invalid_settings` for a
    value that stands where a table belongs or the other way round."""
    _check_text(merged)
    sections = Document.model_fields
    for name, value in merged.values.items():
        if name not in sections:
            raise unknown((name,), sections, merged)
        model = sections[name].annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            continue
        if not isinstance(value, Mapping):
            raise invalid((name,), f"a table [{name}] is expected, not {value!r:.40}", merged)
        _check_section(name, value, model, merged)
    for name in merged.values.get("models", {}):
        if name not in _RESERVED and not _USE_OF_MODELS.fullmatch(name):
            raise invalid(("models", name), "a use is letters, digits, _ . - and at most 64 of them", merged)


def _check_text(merged: Merged) -> None:
    """A variable or an option may hold any bytes; all but a path has to be text."""
    for path, value in leaves(merged.values, ()):
        if path == ("data_root",):
            continue
        try:
            str(value).encode()
        except UnicodeEncodeError:
            raise invalid(path, "it is not text in UTF-8", merged) from None


def _check_section(name: str, table: Mapping[str, Any], model: type[BaseModel], merged: Merged) -> None:
    for key, value in table.items():
        path = (name, key)
        if key in model.model_fields:
            if isinstance(value, Mapping):
                raise invalid(path, f'"{key}" is a setting of [{name}], not the name of a table', merged)
        elif not issubclass(model, KindSection) or not isinstance(value, Mapping):
            raise unknown(path, model.model_fields, merged)
    if name == "models":
        for key, value in table.items():
            if isinstance(value, Mapping) and not isinstance(value.get("use", ""), str):
                raise invalid((name, key, "use"), "it names one provider, as a text", merged)
            if key == "use":
                raise invalid((name, key), 'a provider is used by a section: [models.NAME] use = "…"', merged)


def unknown(path: Path, valid: Iterable[str], merged: Merged) -> InvalidRequest:
    """`unknown_setting`, with what was probably meant."""
    names = sorted(valid)
    close = get_close_matches(path[-1].lower(), names, n=1)
    prefix = f"{dotted(path[:-1])}." if len(path) > 1 else ""
    hint = f"did you mean {prefix}{close[0]}?" if close else f"there are {', '.join(names) or 'none'}"
    return InvalidRequest(
        "unknown_setting",
        f"unknown setting {dotted(path)} ({merged.source(path)}): {hint}",
        fields={dotted(path): "unknown"},
    )


def invalid(path: Path, reason: str, merged: Merged) -> InvalidRequest:
    return InvalidRequest(
        "invalid_settings", f"{dotted(path)} ({merged.source(path)}): {reason}", fields={dotted(path): reason}
    )


def check_no_literal_secrets(values: Mapping[str, Any], merged: Merged, keys: Collection[str]) -> None:
    """Raises `InvalidRequest` `literal_secret` for a secret in the file: a file is copied, committed and shown.

    A secret is a text under a key that names one (`token`, `work_api_key`), or a URL with a password in it.
    """
    for path, value in leaves(values, keys):
        if any(_is_secret(path, text, keys) for text in (value if isinstance(value, list) else [value])):
            variable = re.sub(r"[^A-Z0-9]+", "_", path[-1].upper()).strip("_") or "NAME"
            raise InvalidRequest(
                "literal_secret",
                f"{dotted(path)} ({merged.source(path)}) holds a secret itself; write a reference instead:"
                f' {path[-1]} = {{env = "{variable}"}}, and set that variable (or use keyring = "…", file = "…")',
                fields={dotted(path): "a secret is written out"},
            )


def _is_secret(path: Path, value: object, keys: Collection[str]) -> bool:
    if not isinstance(value, str | int) or isinstance(value, bool) or parse_reference(value, keys=keys) is not None:
        return False
    if isinstance(value, int):
        return names_a_secret(path[-1]) and not path[-1].lower().endswith("s")  # max_tokens = 4096 is a figure
    return bool(value) and (names_a_secret(path[-1]) or _PASSWORD_IN_URL.search(value) is not None)
