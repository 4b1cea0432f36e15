"""Areas on a real folder of the disk; `area_rig` is importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
