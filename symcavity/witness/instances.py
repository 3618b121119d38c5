"""Finite instances as a witness of a derivation: claims about averages, compared with measured averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Add, Expr, Sum, Symbol, sympify

from symcavity.errors import SymcavityError
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.finite.compared_theory import point_of
from symcavity.finite.labels import label
from symcavity.model.averages import Average
from symcavity.model.quantities import Global
from symcavity.record.derivation import SIMULATION, Verdict
from symcavity.witness.registry import largest

LIMIT, ALLOWED = 4.0, 3.0


@dataclass(frozen=True)
class Measured:
    """Both sides of a claim, evaluated at measured averages.

    Attributes
    ----------
    lhs, rhs : float
        The sides.
    stderr : float
        The standard error of their difference, by leaving out one instance at a time.
    allowed : float
        What a finite size may contribute: a few parts in N of the terms.
    """

    lhs: float
    rhs: float
    stderr: float
    allowed: float

    @property
    def z(self) -> float:
        """The difference beyond what the size allows, in standard errors; infinite where a side is not a number."""
        excess = largest(0.0, abs(self.lhs - self.rhs) - self.allowed)
        return excess / self.stderr if self.stderr > 0 else 0.0 if excess == 0 else float("inf")


def witness(sim: Any, step: Any, limit: float = LIMIT) -> list[Verdict]:
    """Judge the claims of a derivation step by the averages of finite instances.

    Order parameters take their measured values, so that a claim that relates them is tested as it stands,
    without the solution of the theory.

    Parameters
    ----------
    sim : Simulation or Simulations
        The simulation; of several sizes the largest speaks.
    step : Step
        A step.  Its ``evidence`` may hold ``theory`` (or ``meanings``), which says what the order parameters
        stand for; its ``data`` may hold an ``observable`` and a ``prediction``, a function of the values of
        the simulation (see :func:`symcavity.finite.compared_theory.point_of`).
    limit : float
        The largest acceptable distance in standard errors.

    Returns
    -------
    list of Verdict
        One for each claim that can be measured; empty if none can.
    """
    sim = getattr(sim, "largest", sim)
    out = [*_predicted(sim, step, limit)]
    meanings = _meanings(step)
    for claim in step.claims:
        measured = measure(sim, claim, meanings)
        if measured is None:
            continue
        detail = (
            f"{measured.lhs:.6g} against {measured.rhs:.6g}, N = {sim.N}, {len(sim.feasible)} instances, "
        )
        detail += f"z = {measured.z:.2f} beyond {ALLOWED:g}/N"
        out.append(Verdict(SIMULATION, measured.z <= limit, detail))
    return out


def _meanings(step: Any) -> dict[Any, Expr]:
    evidence = getattr(step, "evidence", {})
    found = evidence.get("meanings") or getattr(evidence.get("theory"), "order_parameters", None) or {}
    return dict(found)


def _predicted(sim: Any, step: Any, limit: float) -> list[Verdict]:
    if "observable" not in step.data or not callable(step.data.get("prediction")):
        return []
    observable = sympify(step.data["observable"])
    try:
        predicted = float(step.data["prediction"](point_of(sim)))
        measured = sim[observable]
    except SymcavityError as error:
        return [Verdict(SIMULATION, False, f"{label(observable)}: {error.found}")]
    z = measured.z(predicted)
    found = f"{measured.mean:.6g} ± {measured.stderr:.1e}, z = {z:+.2f}"
    return [
        Verdict(SIMULATION, bool(abs(z) <= limit), f"{label(observable)}: {predicted:.6g} against {found}")
    ]


def measure(sim: Any, claim: Any, meanings: dict[Any, Expr]) -> Measured | None:
    """Evaluate both sides of a claim at measured averages; None if it speaks of anything else.

    Parameters
    ----------
    sim : Simulation
        The simulation.
    claim : Equation
        The claim.
    meanings : dict
        Averages by order parameter.
    """
    sides = [sympify(side).xreplace(meanings) for side in (claim.lhs, claim.rhs)]
    nodes: dict[Expr, None] = {}
    for side in sides:
        _collect(side, nodes)
    if not any(isinstance(node, Average | Sum) for node in nodes) or len(sim.feasible) < 2:
        return None
    marks = {node: Symbol(f"m{k}") for k, node in enumerate(nodes)}
    numbers = {s: sympify(v) for s, v in sim.setup.values.parameters.items()}
    numbers |= {kind.size: sympify(n) for kind, n in sim.counts.items()}
    numbers |= {kind.ratio: sympify(n) / sim.N for kind, n in sim.counts.items()}
    bare = [side.xreplace(marks).xreplace(numbers) for side in sides]
    if any(not side.free_symbols <= set(marks.values()) for side in bare):
        return None
    try:
        compiled = [Compiled(side, "numpy") for side in bare]
        terms = [Compiled(term, "numpy") for side in bare for term in Add.make_args(side)]
        samples = {marks[node]: sim[node].samples for node in nodes}
        if any(len(values) != len(sim.feasible) for values in samples.values()):
            return None  # in some instances it differs from one minimizer to another
        lhs, rhs = _at(compiled, samples, slice(None))
        count = len(sim.feasible)
        without = [_at(compiled, samples, np.arange(count) != k) for k in range(count)]
        left_out = np.array([left - right for left, right in without])
        scale = float(np.sum(np.abs(_at(terms, samples, slice(None)))))
    except (SymcavityError, TypeError, ValueError, ArithmeticError, NotImplementedError):
        return None
    if not np.isfinite(scale):
        return None
    stderr = float(np.sqrt((count - 1) / count * np.sum((left_out - left_out.mean()) ** 2)))
    return Measured(lhs, rhs, max(stderr, 1e-12 * scale), ALLOWED / sim.N * scale)


def _collect(expr: Any, nodes: dict[Expr, None]) -> None:
    if isinstance(expr, Average | Sum | Global):
        nodes.setdefault(expr)
        return
    for arg in getattr(expr, "args", ()):
        _collect(arg, nodes)


def _at(sides: list[Compiled], samples: dict[Symbol, np.ndarray], kept: Any) -> list[float]:
    values = {mark: float(np.mean(v[kept])) for mark, v in samples.items()}
    return [float(side(values)) for side in sides]
