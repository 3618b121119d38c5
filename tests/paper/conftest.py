"""Let the tests of the paper share their reader and their table."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
