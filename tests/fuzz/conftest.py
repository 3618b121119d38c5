"""Let the tests of the fuzzer share its files."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
