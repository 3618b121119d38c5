"""Let the tests of declarations share their spellings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
