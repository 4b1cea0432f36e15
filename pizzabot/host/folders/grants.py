"""A grant, how it is named, and which grants cannot stand beside each other (spec/01 §11)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from pizzabot_hookspecs.file_storage import FolderGrant
from pizzabot_hookspecs.files import GrantedFolder

MAX_SLUG = 48
"""Characters of a grant's id, before a number that tells it from others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """A folder that is granted now. `path` is canonical. `created_at` None: the file grants it, and only the file can
    take it back."""

    id: str
    label: str
    path: str
    read_only: bool
    created_at: float | None = None

    @property
    def managed_by_file(self) -> bool:
        return self.created_at is None

    @property
    def folder(self) -> GrantedFolder:
        return GrantedFolder(id=self.id, host_path=self.path, path=f"/local/{self.id}", read_only=self.read_only)


def from_row(row: FolderGrant) -> Grant:
    return Grant(id=row.id, label=row.label, path=row.path, read_only=row.read_only, created_at=row.created_at)


def label_of(path: str) -> str:
    """The last name of a canonical path; `/` for the root of the disk."""
    return path.rpartition("/")[2] or "/"


def new_id(label: str, taken: Collection[str]) -> str:
    """The label as a slug, with `-2`, `-3`, … where another grant has it already."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", label) if not unicodedata.combining(letter))
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:MAX_SLUG].strip("-") or "folder"
    return next(name for name in _numbered(slug) if name not in taken)


def _numbered(slug: str) -> Iterable[str]:
    yield slug
    for number in count(2):
        yield f"{slug}-{number}"


def is_inside(path: str, folder: str) -> bool:
    """Whether a canonical path lies in another one, or is it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def conflicting(path: str, grants: Iterable[Grant], *, read_only: bool) -> Grant | None:
    """The first grant that a new one of `path` cannot stand beside: one inside the other, with the same access or
    with the outer one writable. A writable folder in one that is only read is fine, in either order."""
    for grant in grants:
        inner, outer = (path, grant.path), (grant.path, path)
        if is_inside(*inner) and not (grant.read_only and not read_only):
            return grant
        if is_inside(*outer) and not (read_only and not grant.read_only):
            return grant
    return None


def in_effect(of_file: Sequence[Grant], stored: Iterable[Grant]) -> list[Grant]:
    """The file's grants, and the stored ones that can stand beside them: of a folder in both, the file's counts."""
    ids = {grant.id for grant in of_file}
    return [
        *of_file,
        *(
            grant
            for grant in stored
            if grant.id not in ids and conflicting(grant.path, of_file, read_only=grant.read_only) is None
        ),
    ]
