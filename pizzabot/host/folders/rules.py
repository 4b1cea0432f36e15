"""`[folders]` of the configuration, checked against the disk when the host starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pizzabot.host.folders.canonical import canonical_folder
from pizzabot.host.folders.grants import Grant, conflicting, is_inside, label_of, new_id
from pizzabot.settings import Settings
from pizzabot_hookspecs import InvalidRequest


@dataclass(frozen=True, kw_only=True)
class FolderRules:
    """`configure`: folders may be granted and browsed over HTTP. `browse_roots` and the grants' paths are canonical.
    `data_root` too."""

    data_root: str
    configure: bool = False
    browse_roots: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()

    @property
    def can_browse(self) -> bool:
        return self.configure and bool(self.browse_roots)

    def touches_data_root(self, path: str) -> bool:
        return is_inside(path, self.data_root) or is_inside(self.data_root, path)


def folder_rules(settings: Settings, data_root: Path) -> FolderRules:
    """Blocks on the disk. Raises `InvalidRequest` `invalid_settings`: a folder that is relative, not there, no folder;
    a grant that touches the data root and does not say so, or that cannot stand beside another."""
    section = settings.document.folders
    rules = FolderRules(
        data_root=os.path.realpath(data_root),
        configure=section.configure,
        browse_roots=tuple(dict.fromkeys(_folder(settings, "browse_roots", path) for path in section.browse_roots)),
    )
    grants: list[Grant] = []
    for number, written in enumerate(section.grants, 1):
        path = _folder(settings, "grants", written.path)
        for problem in _problems(
            rules, path, grants, read_only=written.read_only, acknowledged=written.acknowledge_data_root
        ):
            raise _invalid(settings, "grants", f"{written.path!r} (number {number}) {problem}")
        label = label_of(path)
        taken = {grant.id for grant in grants}
        grants.append(Grant(id=new_id(label, taken), label=label, path=path, read_only=written.read_only))
    return FolderRules(
        data_root=rules.data_root,
        configure=rules.configure,
        browse_roots=rules.browse_roots,
        grants=tuple(grants),
    )


def _problems(
    rules: FolderRules,
    path: str,
    grants: list[Grant],
    *,
    read_only: bool,
    acknowledged: bool,
) -> Iterator[str]:
    if rules.touches_data_root(path) and not acknowledged:
        yield "holds the data root or lies in it; say acknowledge_data_root = true where that is meant"
    other = conflicting(path, grants, read_only=read_only)
    if other is not None:
        yield f"overlaps with {other.path!r}; only a writable folder may lie in one that is only read"


def _folder(settings: Settings, key: str, path: str) -> str:
    try:
        return canonical_folder(str(Path(path).expanduser()))
    except RuntimeError:  # ~ of nobody who is known
        raise _invalid(settings, key, f"{path!r} begins with the home of somebody unknown") from None
    except InvalidRequest as error:
        raise _invalid(settings, key, error.detail) from None


def _invalid(settings: Settings, key: str, problem: str) -> InvalidRequest:
    name = f"folders.{key}"
    detail = f"{name} ({settings.provenance(name)}): {problem}"
    return InvalidRequest("invalid_settings", detail, fields={name: problem})
