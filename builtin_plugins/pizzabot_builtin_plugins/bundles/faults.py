"""`BundleFaultError`: why a bundle is not loaded, with the file and the line where there are any."""

from __future__ import annotations

from pizzabot_hookspecs.bundles import BundleStatus

MAX_REASON = 300
"""Characters of a reason: a file can quote itself at any length."""


class BundleFaultError(Exception):
    """`file` is a path inside the bundle, `line` counts from 1."""

    def __init__(
        self, reason: str, *, file: str = "", line: int | None = None, status: BundleStatus = BundleStatus.FAILED
    ) -> None:
        shown = " ".join(reason.encode(errors="replace").decode().split())[:MAX_REASON]
        where = file if line is None else f"{file} line {line}"
        super().__init__(f"{where}: {shown}" if where else shown)
        self.file = file
        self.status = status


def incompatible(reason: str, *, file: str, line: int | None) -> BundleFaultError:
    """The bundle may be right and this host is not the one it is for."""
    return BundleFaultError(reason, file=file, line=line, status=BundleStatus.INCOMPATIBLE)
