"""Run random declarations for as long as wanted: ``python -m tests.fuzz --count 10000 --minutes 60 --seed 1``."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # one thread of linear algebra for each process

import fuzz_shrink  # noqa: E402
from fuzz_grammar import generate  # noqa: E402
from fuzz_judge import FALSE, Finding  # noqa: E402
from fuzz_pool import checks_of, outcomes  # noqa: E402


def report(seed: int, number: int, finding: Finding, args: argparse.Namespace) -> str:
    """Return a minimal program that shows a finding, with what was seen."""
    case, checks = generate(seed, number), checks_of(number, args.limit, args.simulate)
    if args.shrink and "died" not in finding.where and "deaf" not in finding.where:
        case = fuzz_shrink.shrink(case, finding, checks, args.shrink)
    detail = "\n".join(f"# {line}" for line in finding.detail.strip().splitlines()[-12:])
    spoiled = f"  (spoiled: {case.spoiled})" if case.spoiled else ""
    return f"# seed {seed}, number {number}{spoiled}\n# {finding}\n{detail}\n{case.source()}"


def main() -> int:
    """Run, print what was found, and write minimal reproductions; status 1 if an invariant is violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many cases")
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=60, help="seconds that a case may take")
    parser.add_argument("--shrink", type=float, default=60, help="seconds spent on making a finding small; 0 for none")
    parser.add_argument("--each", type=int, default=3, help="how many findings of a kind are written out")
    parser.add_argument("--simulate", action="store_true", help="hold a fifth of the solutions against instances")
    parser.add_argument("--file", type=Path, help="where reproductions are appended; the screen without it")
    args = parser.parse_args()
    how = args.limit, args.simulate
    ends: Counter[str] = Counter()
    found: Counter[str] = Counter()
    numbers = range(args.start, args.start + args.count)
    results = outcomes(args.seed, numbers, args.jobs, 60 * args.minutes, how)
    for count, (number, outcome) in enumerate(results, start=1):
        ill = "ill-formed" if generate(args.seed, number).spoiled else "well-formed"
        ends[f"{ill}: {outcome.end}"] += 1
        for finding in outcome.findings:
            found[str(finding)] += 1
            if found[str(finding)] > args.each:
                continue
            text = report(args.seed, number, finding, args)
            if args.file:
                with args.file.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")
            print(f"{number}: {finding}" if args.file else text, flush=True)
        if count % 100 == 0:
            print(f"{count} cases, {sum(found.values())} findings", flush=True)
    for name, counted in (("ends", ends), ("findings", found)):
        print(f"{name}:")
        for key, times in counted.most_common():
            print(f"  {times:6} {key}")
    return int(any(key.split(":")[0] in FALSE for key in found))


if __name__ == "__main__":
    sys.exit(main())
