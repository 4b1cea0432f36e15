"""Which hosts a bundle is for: `engines.pizzaBot`, a range as npm writes it, and the capabilities that it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_RANGE = 200
"""Characters of a range of versions."""
HOST_CAPABILITIES = frozenset({"mcp-servers/v1", "skills/v1", "materializer/v1"})

_CAPABILITY = re.compile(r"[a-z0-9][a-z0-9._-]*/v[1-9]\d*")
_RELEASE = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?")


def engine_fault(written: str, host_version: str) -> str | None:
    """Why this host is none of the range's. A host before its release (`1.2.0.dev1`) counts as that release."""
    from semantic_version import NpmSpec, Version  # type: ignore[import-untyped]  # it has no stubs

    if len(written) > MAX_RANGE:
        return f"the range of versions is longer than {MAX_RANGE} characters"
    try:
        spec = NpmSpec(written.strip() or "*")
    except ValueError:
        return f"{written!r} is no range of versions: write it as npm does, `>=1.2.0 <2` or `^1.2.0`"
    release = _RELEASE.match(host_version)
    if release is None:
        return f"the version of this host, {host_version!r}, cannot be compared"
    version = Version(".".join(part or "0" for part in release.groups()))
    return None if version in spec else f"it is for pizzabot {written}, and this is {host_version}"


def wrong_capability(ids: Sequence[str]) -> str | None:
    """The first that is no id at all."""
    return next((one for one in ids if not _CAPABILITY.fullmatch(one)), None)


def missing_capabilities(required: Sequence[str]) -> list[str]:
    return [one for one in required if one not in HOST_CAPABILITIES]
