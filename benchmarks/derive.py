"""Time from a declaration to its closed equations, warm, and the whole process ``symcavity derive gardner``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from symcavity.derivations import anisotropic, gardner, kernel_ridge, output_bias, soft_margin

SYSTEMS = {m.__name__.rsplit(".", 1)[-1]: m for m in (gardner, kernel_ridge, soft_margin, anisotropic, output_bias)}


def derive(problem: object) -> None:
    theory = problem.cavity()  # type: ignore[attr-defined]
    assert len(theory.equations) >= len(theory.unknowns)
    assert theory.reduced_with_load if theory.system.fixed else theory.reduced


def cold() -> float:
    """Return the wall time of the command, at its best of three."""
    command = shutil.which("symcavity") or str(Path(sys.executable).with_name("symcavity"))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([command, "derive", "gardner"], check=True, capture_output=True)  # noqa: S603 - our own command
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    print(f"{'system':<36} {'seconds':>8} {'bound':>6}")
    for name, module in SYSTEMS.items():
        derive(module.problem)  # warm SymPy's caches
        times = []
        for _ in range(3):
            start = time.perf_counter()
            derive(module.problem)
            times.append(time.perf_counter() - start)
        print(f"{name + ', warm':<36} {min(times):8.3f} {1:6}")
    print(f"{'process: symcavity derive gardner':<36} {cold():8.3f} {3:6}")


if __name__ == "__main__":
    main()
