"""How large a body each core route takes: one limit for all but the routes that carry files (spec/01 §2.3).

The larger ones hold only for who has the token: a body is read before anybody is asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pizzabot_hookspecs.http_routes import Scope

_MIB = 1024 * 1024
SKILL_BODY_BYTES = -(-50 * _MIB * 4 // 3) + _MIB
"""A bundle of 50 MiB as base64, and what is around it."""


@dataclass(frozen=True, kw_only=True)
class LargeBody:
    method: str
    path: re.Pattern[str]
    limit: int


ARTIFACT_BODY_BYTES = 13 * _MIB
"""A text of 2 MiB as JSON, where each of its bytes may be written as six."""
STREAMED_BODIES: tuple[re.Pattern[str], ...] = (
    re.compile(r"/attachments/?"),
    re.compile(r"/threads/[^/]+/uploads/?"),
    re.compile(r"/skills/import/?"),
    re.compile(r"/plugins/import/?"),
)
"""Where a POST brings a file: it goes on as it comes, and the route counts it."""


def is_streamed(scope: Scope) -> bool:
    return scope["method"] == "POST" and any(one.fullmatch(scope["path"]) for one in STREAMED_BODIES)


LARGE_BODIES: tuple[LargeBody, ...] = (
    LargeBody(method="PUT", path=re.compile(r"/threads/[^/]+/artifacts/.+", re.DOTALL), limit=ARTIFACT_BODY_BYTES),
    LargeBody(method="POST", path=re.compile(r"/skills/?"), limit=SKILL_BODY_BYTES),
    LargeBody(method="PATCH", path=re.compile(r"/skills/[^/]+/?"), limit=SKILL_BODY_BYTES),
)


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """`json_bytes` is the limit of everything else; a person who raises it raises the others where they are lower."""

    json_bytes: int
    admits: Callable[[Scope], bool]

    def of(self, scope: Scope) -> int:
        for large in LARGE_BODIES:
            if scope["method"] == large.method and large.path.fullmatch(scope["path"]):
                return max(large.limit, self.json_bytes) if self.admits(scope) else self.json_bytes
        return self.json_bytes
