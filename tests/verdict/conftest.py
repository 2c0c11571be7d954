"""Lets the tests of this room share their synthetic curves."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
