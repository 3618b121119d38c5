"""Witnesses of the scatter of the minimum: the minimum itself, and instances that are solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Add, Rational

from symcavity.finite.observables import Reader
from symcavity.finite.run import run_one
from symcavity.finite.setup import prepare
from symcavity.method.minimum import minimum
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import FEATURE, N
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.record.derivation import SIMULATION, Step, Verdict
from symcavity.witness.points import seeded_values, solve_shared
from symcavity.witness.registry import largest, result, witness
from symcavity.witness.solved import held

SIZE, SEEDS, LIMIT, ALLOWED = 30, 150, 4.0, 5.0  # ALLOWED: parts in N that a finite size may contribute
SHIFT, NEAR, DIGITS = Rational(1, 1000), 1e-4, 4  # of a difference quotient
QUOTIENT = "difference quotients of solved minima"


def _body(step: Step, key: int) -> Any:
    """The minimum of any site of a kind, in the sums that it hears."""
    claim = step.claims[key]
    (kind,) = {kind for q in site_quantities(claim.lhs) for kind in q.site}
    rule = {q: q.xreplace({0: kind.index}) for q in site_quantities(claim.rhs) if 0 in q.indices}
    return kind, claim.rhs.xreplace(rule).xreplace(_heard(step.evidence["theory"].inserted[kind]))


def _heard(site: Any) -> dict[Any, Any]:
    """The cavity fields of a site: what it hears, less what comes back of its own."""
    return {h.eta: h.declared.as_sum - (h.effective() - h.eta).xreplace(dict(site.means)) for h in site.heard}


@witness("site_minima")
def minima(step: Step, dps: int) -> list[Verdict]:
    """Summed over all sites, less what couplings add twice, they are the declared objective at its minimum."""
    theory = step.evidence["theory"]
    found = minimum(theory)
    total = found.loops + found.shared
    for key in range(len(step.claims)):
        kind, body = _body(step, key)
        total += kind.ratio * Average(body)
    return held(theory, [Equation(total, theory.objective)], dps)


@witness("given_emissions")
def given(step: Step, _dps: int) -> list[Verdict]:
    """How the minimum moves as a given emission grows, by solving at emissions that are larger and smaller."""
    theory, found = step.evidence["theory"], step.evidence["fluctuations"]
    values = seeded_values(theory, 0)
    families_of = list(dict.fromkeys(q for c in found.given for q in families([c.emissions], Quenched)))
    if not families_of or any(q not in values for q in families_of):
        return [Verdict(QUOTIENT, None, "the law of a given emission is a part of the declaration")]
    solution = solve_shared(theory, values, 15)
    names = {name: found.minima[kind] for kind, name in found.names.items()}
    claims = {claim.lhs: claim.rhs.xreplace(names) for claim in step.claims}
    worst = 0.0
    for family in families_of:
        grown, shrunk = (_scaled(theory, values, family, 1 + side * SHIFT) for side in (1, -1))
        slope = float(grown.number(theory.objective) - shrunk.number(theory.objective)) / (2 * float(SHIFT))
        terms = [float(solution[term]) for term in _growth(theory, found, family, claims)]
        worst = largest(worst, abs(sum(terms) - slope) / sum(map(abs, terms)))
    where = "the minimum moves as it says when given emissions grow"
    return result(QUOTIENT, bool(worst < NEAR), where, f"the slope of the minimum differs by {worst:.2g}", DIGITS)


def _scaled(theory: Any, values: Any, family: Quenched, factor: Any) -> Any:
    return solve_shared(theory, {**values, family: {v * factor: p for v, p in values[family].items()}}, 15)


def _growth(theory: Any, found: Any, family: Quenched, claims: Any) -> list[Any]:
    """The parts of the derivative of the minimum in the size of a given emission, each an average over single sites."""
    out = []
    for kind, body in found.minima.items():
        site, t = theory.inserted[kind], family.at_site()
        if kind not in t.site:
            continue
        effective = {h.declared.as_sum: h.effective().xreplace(dict(site.means)) for h in site.heard}
        grown = (t * body.xreplace(effective).diff(t)).expand()
        back = _heard(site)
        out += [kind.ratio * Average(term.xreplace(back)) for term in Add.make_args(grown) if term != 0]
        for c, bend in zip(found.given, claims.values(), strict=True):
            if c.sender == kind:
                out.append(kind.ratio * bend * Average(t * c.emissions.diff(t)) / 2)
    return out


@witness("copies_coincide")
def variance(step: Step, _dps: int) -> list[Verdict]:
    """The variance of the minima of instances, each solved as it was declared."""
    theory = step.evidence["theory"]
    values = seeded_values(theory, 0)
    solution = solve_shared(theory, values, 15)
    (claim,) = step.claims
    found = step.evidence["fluctuations"]
    bends = {bend: c.value for c, bend in zip(found.given, found.bends, strict=True)}
    rule = {name: found.minima[kind] for kind, name in found.names.items()}
    claimed = float(solution[claim.rhs.xreplace(bends).xreplace(rule)])
    size = int(values.get(N, SIZE))  # where sums do not grow with the number of sites, it is part of the values
    setup = prepare(theory.system, {k: v for k, v in values.items() if k != N})
    samples = [run_one(setup, (size, seed)) for seed in range(SEEDS)]
    from_declared = [_minimum(setup, sample, theory) for sample in samples if sample.feasible]
    if len(from_declared) < SEEDS:
        return [Verdict(SIMULATION, None, "not all instances have a solution")]
    energies = np.array(from_declared)
    measured = size * float(np.var(energies, ddof=1))
    kurtosis = float(np.mean((energies - energies.mean()) ** 4)) / float(np.var(energies)) ** 2
    error = measured * np.sqrt(max(kurtosis - 1, 0) / SEEDS)
    ok = abs(measured - claimed) < LIMIT * error + ALLOWED / size * abs(claimed)
    where = f"{SEEDS} instances of N = {size}"
    return result(SIMULATION, bool(ok), where, f"{where} have {measured:.4g}, and {claimed:.4g} is claimed")


def _minimum(setup: Any, sample: Any, theory: Any) -> float:
    """The declared objective of a solved instance, over N."""
    instance = setup.instance(sample.counts[FEATURE], sample.seed)
    return float(Reader(setup.written, instance, sample.solved)(theory.objective))
