"""Witnesses of the scatter of the minimum: the minimum itself, and instances that are solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Mul

from symcavity.algebra.precision import mp
from symcavity.finite.observables import Reader
from symcavity.finite.run import run_one
from symcavity.finite.setup import prepare
from symcavity.method.perturbed import perturbed
from symcavity.model.averages import Average
from symcavity.model.kinds import FEATURE, N
from symcavity.model.quantities import site_quantities
from symcavity.record.derivation import SIMULATION, Step, Verdict
from symcavity.witness.points import seeded_values, solve_shared, solved_point
from symcavity.witness.registry import numeric, result, witness

SIZE, SEEDS, LIMIT, ALLOWED = 30, 150, 4.0, 5.0  # ALLOWED: parts in N that a finite size may contribute


def _body(step: Step, key: int) -> Any:
    claim = step.claims[key]
    (kind,) = {kind for q in site_quantities(claim.lhs) for kind in q.site}
    rule = {q: q.xreplace({0: kind.index}) for q in site_quantities(claim.rhs) if 0 in q.indices}
    return kind, claim.rhs.xreplace(rule)


@witness("site_minima")
def minima(step: Step, dps: int) -> list[Verdict]:
    """Summed over all sites, less what couplings add twice, they are the declared objective at its minimum."""
    theory = step.evidence["theory"]
    solution, digits, where = solved_point(theory, dps)
    if solution is None:
        return [Verdict(numeric(dps), None, where)]
    found = perturbed(theory)
    total = mp.zero
    for key in range(len(step.claims)):
        kind, body = _body(step, key)
        total += solution.number(found.shares[kind]) * solution.number(Average(body))
    for kind, fields in found.sites.items():
        for place, a in enumerate(fields):
            both = Mul(a.variance, found.shares[kind], Average(a.slopes[place]))
            total += solution.number(both) / 2
    true = solution.number(theory.objective)
    ok = abs(total - true) < mp.mpf(10) ** (-min(digits, dps) + 5) * (1 + abs(true))
    return result(numeric(dps), bool(ok), "their sum is the minimum of the declared objective")


@witness("copies_coincide")
def variance(step: Step, _dps: int) -> list[Verdict]:
    """The variance of the minima of instances, each solved as it was declared."""
    theory = step.evidence["theory"]
    values = seeded_values(theory, 0)
    solution = solve_shared(theory, values, 15)
    (claim,) = step.claims
    found = step.evidence["fluctuations"]
    rule = {name: found.minima[kind] for kind, name in found.names.items()}
    claimed = float(solution[claim.rhs.xreplace(rule)])
    setup = prepare(theory.system, {k: v for k, v in values.items() if k != N})
    samples = [run_one(setup, (SIZE, seed)) for seed in range(SEEDS)]
    from_declared = [_minimum(setup, sample, theory) for sample in samples if sample.feasible]
    if len(from_declared) < SEEDS:
        return [Verdict(SIMULATION, None, "not all instances have a solution")]
    energies = np.array(from_declared)
    measured = SIZE * float(np.var(energies, ddof=1))
    kurtosis = float(np.mean((energies - energies.mean()) ** 4)) / float(np.var(energies)) ** 2
    error = measured * np.sqrt(max(kurtosis - 1, 0) / SEEDS)
    ok = abs(measured - claimed) < LIMIT * error + ALLOWED / SIZE * abs(claimed)
    where = f"{SEEDS} instances of N = {SIZE}"
    return result(SIMULATION, bool(ok), where, f"{where} have {measured:.4g}, and {claimed:.4g} is claimed")


def _minimum(setup: Any, sample: Any, theory: Any) -> float:
    """The declared objective of a solved instance, over N."""
    instance = setup.instance(sample.counts[FEATURE], sample.seed)
    return float(Reader(setup.written, instance, sample.solved)(theory.objective))
