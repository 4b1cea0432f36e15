"""The documents as the tests of this folder read them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
