"""Which folders a watch has to name where one below it cannot be read.

inotify is told of each folder by itself, and watchfiles stops going down at the first that is denied, with all that
come after it: one locked folder would blind the watch to the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

MAX_FOLDERS = 10_000
"""That are named; what lies in further ones is seen with the next change elsewhere."""


def readable_folders(roots: Iterable[Path]) -> list[str]:
    """`roots` and every folder below them that this process may list, without following links."""
    found = (path for root in roots for path, _, _ in os.walk(root))
    return list(islice((path for path in found if os.access(path, os.R_OK | os.X_OK)), MAX_FOLDERS))
