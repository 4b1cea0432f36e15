"""Install plugins without pip, and find out what an import brings in.

    with plugin_folder(tmp_path) as folder:
        install_plugin(folder, "acme_store", SOURCE, requires=["pizzabot-host>=1,<2"])
        assert [report.name for report in Plugins(builtins={}).load().report()] == ["acme-store"]

What is written is what an installer writes, so that the real discovery is tested.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib
import io
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

IMPORT_SECONDS = 60
"""Longest import in `imported_by`; then `subprocess.TimeoutExpired` is raised."""


def install_plugin(
    path: Path,
    name: str,
    source: str,
    *,
    requires: Sequence[str] = (),
    version: str = "1.0",
    distribution: str | None = None,
    plugin_name: str | None = None,
    entry_point: str | None = None,
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write the module `name` and its dist-info into the folder `path`; the dist-info's path.

    `requires`      `Requires-Dist` lines
    `distribution`  its name on an index; by default the module's with hyphens
    `plugin_name`   the entry point's name; by default the distribution's
    `entry_point`   the entry point's value; by default the module
    `files`         more files, by their path in the folder; each gets its line in RECORD

    The folder has to be on `sys.path` when plugins are loaded: see `plugin_folder`.
    """
    if not name.isidentifier():
        raise ValueError(f"{name!r} cannot be imported: a module's name is an identifier, such as acme_store")
    distribution = distribution or name.replace("_", "-")
    written = {f"{name}.py": source, **(files or {})}
    info = f"{distribution.replace('-', '_')}-{version}.dist-info"
    written[f"{info}/METADATA"] = _metadata(distribution, version, requires)
    written[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: pizzabot.testing\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    written[f"{info}/entry_points.txt"] = f"[pizzabot]\n{plugin_name or distribution} = {entry_point or name}\n"
    written[f"{info}/RECORD"] = _record(written, f"{info}/RECORD")
    for relative, text in written.items():
        target = path / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
    # A second version within the clock's resolution would be taken for the first one.
    Path(cache_from_source(str(path / f"{name}.py"))).unlink(missing_ok=True)
    importlib.invalidate_caches()
    return path / info


@contextmanager
def plugin_folder(path: Path) -> Iterator[Path]:
    """`path` at the front of `sys.path`; afterwards it is gone from there, and so is every module imported from it."""
    path.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(path))
    importlib.invalidate_caches()
    try:
        yield path
    finally:
        if str(path) in sys.path:
            sys.path.remove(str(path))
        for name in [name for name, module in list(sys.modules.items()) if _lies_in(module, path)]:
            del sys.modules[name]
        importlib.invalidate_caches()


def imported_by(module: str) -> set[str]:
    """The names of all modules that `import module` brings into a fresh interpreter with this one's `sys.path`.

    Raises `ImportError` with the last line of the traceback when the import fails.
    """
    code = (
        "import sys; sys.path[:] = sys.argv[2:]; before = set(sys.modules)\n"
        "__import__(sys.argv[1]); print(chr(30), *sorted(set(sys.modules) - before), file=sys.__stdout__)"
    )
    finished = subprocess.run(  # noqa: S603  # our own interpreter and code
        [sys.executable, "-c", code, module, *sys.path],
        capture_output=True,
        text=True,
        timeout=IMPORT_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        raise ImportError((finished.stderr.strip().splitlines() or ["no message"])[-1], name=module)
    return set(finished.stdout.rpartition(chr(30))[2].split())  # the module may print, too


def _lies_in(module: object, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(path)


def _metadata(distribution: str, version: str, requires: Sequence[str]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {line}" for line in requires), "", ""])


def _record(written: Mapping[str, str], own_path: str) -> str:
    """Path, hash and size of each file, as the specification of recorded installs has it; none for RECORD itself."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    for relative, text in written.items():
        content = text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow([relative, f"sha256={digest}", len(content)])
    rows.writerow([own_path, "", ""])
    return table.getvalue()
