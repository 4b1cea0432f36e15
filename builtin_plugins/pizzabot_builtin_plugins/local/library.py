"""The folder of installed weights: `<name>.gguf` files, looked up by name or by path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pizzabot_builtin_plugins.local.gguf import GgufHeader, read_header
from pizzabot_builtin_plugins.local.known import KNOWN, KnownModel
from pizzabot_hookspecs import InvalidRequest, NotFound
from pizzabot_hookspecs.model_providers import ModelDescriptor

MAX_LISTED = 500
"""More files than this in the folder are not looked at."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SUFFIX = ".gguf"


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryModel:
    """One model that can be named. `path` and `header` are None while it is only known; `problem` is what is wrong."""

    name: str
    path: Path | None = None
    size: int
    header: GgufHeader | None = None
    known: KnownModel | None = None
    problem: str | None = None

    def descriptor(self, context_size: int) -> ModelDescriptor:
        """What the host is told; the window is what we run it with, `context_size` at most."""
        title = self.known.display_name if self.known else (self.header.name if self.header else None)
        length = self.header.context_length if self.header else (self.known.context_window if self.known else None)
        tools = self.header.supports_tools if self.header else (False if self.known else None)
        return ModelDescriptor(
            id=self.name,
            display_name=title or self.name,
            context_window=min(length, context_size) if length else None,
            supports_tools=tools,
            supports_vision=False,
        )


def checked_name(name: str) -> str:
    """`name` without `.gguf`, if it is one safe path segment; else `InvalidRequest` `invalid_model_name`."""
    name = name.removesuffix(_SUFFIX)
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            "invalid_model_name",
            f"{name!r} is not a model name: letters, digits, '.', '_' and '-' only, at most 128 characters, "
            "the first a letter or digit",
        )
    return name


def is_path(model: str) -> bool:
    """`/path/to/x.gguf`, `~/x.gguf` and `./x.gguf` name files; a name never has a slash."""
    return "/" in model


class Library:
    """Reads a folder of weights; headers are read again only when the file changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._headers: dict[tuple[Path, int, int], GgufHeader] = {}

    def path_of(self, name: str) -> Path:
        return self.folder / (checked_name(name) + _SUFFIX)

    def find(self, model: str) -> LibraryModel:
        """The model behind a name or path. Blocking; raises `NotFound` `no_such_model` or what `read_header` raises.

        A known model that is not installed comes back with `path` None.
        """
        path = Path(model).expanduser() if is_path(model) else self.path_of(model)
        known = None if is_path(model) else KNOWN.get(checked_name(model))
        if path.is_file():
            name = model if is_path(model) else checked_name(model)
            return LibraryModel(
                name=name, path=path.absolute(), size=path.stat().st_size, header=self._header(path), known=known
            )
        if known is not None:
            return LibraryModel(name=known.name, size=known.size, known=known)
        raise NotFound("no_such_model", self._not_found(model))

    def models(self) -> list[LibraryModel]:
        """Installed models by name, broken files with their `problem`, then known ones that are not there. Blocking."""
        found = [self._listed(path) for path in self._files()]
        names = {model.name for model in found}
        return found + [
            LibraryModel(name=known.name, size=known.size, known=known)
            for known in KNOWN.values()
            if known.name not in names
        ]

    def remove(self, name: str) -> Path:
        """Delete an installed model's file and return its path. Raises `NotFound` `no_such_model`."""
        path = self.path_of(name)
        if not path.is_file() and not path.is_symlink():
            raise NotFound("no_such_model", f"no model {checked_name(name)!r} is installed in {self.folder}")
        path.unlink()
        return path

    def _files(self) -> Sequence[Path]:
        if not self.folder.is_dir():
            return []
        files = [path for path in self.folder.glob("*" + _SUFFIX) if _NAME.fullmatch(path.stem) and path.is_file()]
        return sorted(files)[:MAX_LISTED]

    def _listed(self, path: Path) -> LibraryModel:
        name, known, size = path.stem, KNOWN.get(path.stem), path.stat().st_size
        try:
            return LibraryModel(name=name, path=path, size=size, header=self._header(path), known=known)
        except InvalidRequest as error:
            return LibraryModel(name=name, path=path, size=size, known=known, problem=error.detail)

    def _header(self, path: Path) -> GgufHeader:
        facts = path.stat()
        key = (path, facts.st_mtime_ns, facts.st_size)
        if key not in self._headers:
            if len(self._headers) >= MAX_LISTED:
                self._headers.clear()
            self._headers[key] = read_header(path)
        return self._headers[key]

    def _not_found(self, model: str) -> str:
        if is_path(model):
            return f"there is no file {model}; name a GGUF file or one of: {', '.join(self._names())}"
        return (
            f"no local model {model!r}; there are: {', '.join(self._names())}. "
            f"Add one with `pizzabot models install PATH|URL --name {model}`"
        )

    def _names(self) -> list[str]:
        return sorted({path.stem for path in self._files()} | set(KNOWN))
