"""Time from a declaration to its closed equations, and of whole commands, beside the import of SymPy.

There is nothing else that derives these; the import of SymPy, timed in between, stands for the speed of the
machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import Bench, run

from symcavity import ConvexProblem, Theory
from symcavity.derivations import anisotropic, gardner, kernel_ridge, output_bias, soft_margin

SYSTEMS = (gardner, kernel_ridge, soft_margin, anisotropic, output_bias)


def derive(problem: Any) -> None:
    theory = Theory(problem.kkt() if isinstance(problem, ConvexProblem) else problem)  # cavity() would remember it
    assert len(theory.equations) >= len(theory.unknowns)
    assert theory.reduced_with_load if theory.system.fixed else theory.reduced


def process(*command: str) -> Callable[[], object]:
    """A command, of which the first run compiles what an installed package has compiled, as SymPy is."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run(command, check=True, capture_output=True, env=env)  # noqa: S603 - our own commands


def main(bench: Bench) -> None:
    sympy = process(sys.executable, "-c", "import sympy")
    own = shutil.which("symcavity", path=str(Path(sys.executable).parent)) or "symcavity"
    for module in SYSTEMS[: bench.size(None, 2)]:
        name = module.__name__.rsplit(".", 1)[-1]
        bench.race(f"{name}, declaration to equations", 1, lambda m=module: derive(m.problem), sympy)
    bench.race("process: symcavity derive gardner", 3, process(own, "derive", "gardner"), sympy)
    solve = process(own, "solve", "gardner", "kappa=1/2")
    bench.race("process: symcavity solve gardner kappa=1/2", 2, solve, sympy)


if __name__ == "__main__":
    run(main)
