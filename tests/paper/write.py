"""Write the table of the paper's equations that the command line shows: ``python tests/paper/write.py``."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from test_paper import TABLE, in_order

SOURCE = "D. G. Clark and H. Sompolinsky, Simplified derivations for high-dimensional convex learning problems"

if __name__ == "__main__":
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in in_order())
    TABLE.write_text(f'{{"source": {json.dumps(SOURCE)}, "rows": [\n{rows}\n]}}\n', encoding="utf-8")
    print(f"{len(in_order())} rows")
