"""Let the tests of the simulation share their declarations."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
