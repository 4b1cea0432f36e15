"""Agents with a sandbox, as the tests of this folder build them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
