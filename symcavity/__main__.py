"""The command line as ``python -m symcavity``."""

import sys

from symcavity.cli import main

if __name__ == "__main__":
    sys.exit(main())
