"""What a runtime tells a model of now and here, behind what was asked: how it is marked, and how to do without it.

Only models see it: it is in no checkpoint, log or transcript. A scripted model that repeats what was said leaves it
out.
"""

from __future__ import annotations

import re

_BLOCK = re.compile(r"\s*<surroundings>.*</surroundings>\s*\Z", re.DOTALL)


def surroundings(text: str) -> str:
    """`text` as it stands behind what was asked."""
    return f"\n\n<surroundings>\n{text}\n</surroundings>"


def without_surroundings(text: str) -> str:
    """What was asked."""
    return _BLOCK.sub("", text)
