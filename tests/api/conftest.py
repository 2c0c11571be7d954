"""Makes the helper module beside it importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
