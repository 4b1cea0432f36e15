"""One folder becomes one `Bundle`: loaded with everything in it, or with the reason why not and nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pizzabot_builtin_plugins.bundles.faults import BundleFaultError
from pizzabot_builtin_plugins.bundles.inside import own_file
from pizzabot_builtin_plugins.bundles.json_files import JsonFile
from pizzabot_builtin_plugins.bundles.manifest import (
    UNSUPPORTED,
    Manifest,
    check_api_version,
    header,
    read_about,
    read_manifest,
)
from pizzabot_builtin_plugins.bundles.servers import servers_of
from pizzabot_builtin_plugins.bundles.skills import SkillFolders, skills_of
from pizzabot_hookspecs.bundles import MANIFEST, Bundle, BundleStatus

MAX_SHOWN_NAME = 80


@dataclass(frozen=True, kw_only=True)
class Reader:
    """`generated` has the folders that materializers made, by the name of their bundle."""

    host_version: str
    folders: SkillFolders
    generated: Mapping[str, Path]

    def read(self, folder: Path, *, removable: bool = False) -> Bundle:
        """Blocking. Never raises for what is in the folder."""
        root = Path(os.path.realpath(folder))
        shown = folder.name.encode(errors="replace").decode()[:MAX_SHOWN_NAME]
        report = Bundle(name=shown, root=root, status=BundleStatus.FAILED, removable=removable)
        try:
            said = JsonFile.read(own_file(root, MANIFEST) or root / MANIFEST, MANIFEST)
            name, api_version = header(said, shown)
            report = replace(report, name=name, api_version=api_version)
            check_api_version(said)
            report = replace(report, about=read_about(said))
            manifest = read_manifest(said, host_version=self.host_version)
            report = replace(report, materializer=manifest.materializer)
            if not manifest.enabled:
                return replace(report, status=BundleStatus.DISABLED, detail="its manifest says `enabled: false`")
            return self._contributing(report, manifest)
        except BundleFaultError as error:
            return replace(report, status=error.status, detail=str(error), file=error.file)
        except (OSError, RecursionError) as error:
            reason = f"it cannot be read: {error}".encode(errors="replace").decode()
            return replace(report, status=BundleStatus.FAILED, detail=reason[:300])

    def _contributing(self, report: Bundle, manifest: Manifest) -> Bundle:
        if manifest.materializer is None:
            return self._with(report, report.root, manifest)
        made = self.generated.get(manifest.name)
        if made is None:
            return replace(report, status=BundleStatus.LOADED, detail=_left_out(report.root, manifest))
        root = Path(os.path.realpath(made))
        try:
            said = JsonFile.read(root / MANIFEST, MANIFEST)
            inner = read_manifest(said, host_version=self.host_version)
            if inner.name != manifest.name or inner.materializer is not None:
                raise said.fault("what was generated is another bundle, or has a materializer of its own", "name")
            return self._with(report, root, inner)
        except BundleFaultError as error:
            raise BundleFaultError(f"what its materializer made: {error}", status=BundleStatus.FAILED) from error

    def _with(self, report: Bundle, root: Path, manifest: Manifest) -> Bundle:
        return replace(
            report,
            status=BundleStatus.LOADED,
            detail=_left_out(root, manifest),
            skills=skills_of(root, manifest, self.folders),
            servers=servers_of(root, manifest),
        )


def _left_out(root: Path, manifest: Manifest) -> str:
    """What a person who knows the format would look for in vain."""
    folders = [f"{name}/" for name in UNSUPPORTED if name not in manifest.dropped and (root / name).is_dir()]
    dropped = [*manifest.dropped, *folders]
    return f"left out, since there is nothing for it here: {', '.join(dropped)}" if dropped else ""
