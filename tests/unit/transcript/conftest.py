"""The transcript's tests share the vectors and their makers in tests/wire/fold."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "wire" / "fold"))
sys.path.insert(0, str(Path(__file__).parent))
