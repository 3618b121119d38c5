"""The command line as ``python -m symcavity``."""

import sys

from symcavity.cli import main

sys.exit(main())
