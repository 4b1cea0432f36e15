"""The engine's tests share one rig."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
