"""Seeded points at which a whole theory is solved, for checks of its formulas."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sympy import Eq, Expr, Ne, Rational, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import one_set
from symcavity.algebra.precision import mp
from symcavity.errors import JumpingLaw, NegativeEntropy, SymcavityError, UnstableSolution, UnsupportedLaw
from symcavity.evaluate.averages.nodes import Needs
from symcavity.evaluate.binding import counterpart, supports
from symcavity.evaluate.solutions.sampled import SampledSolution
from symcavity.evaluate.solve import settles, solve_theory
from symcavity.evaluate.solving.solution_at_rest import RestingSolution
from symcavity.evaluate.state_evolution import state_evolution
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.convexity import sample_parameter, sample_parameters
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import N, SiteCount, alpha, is_index
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.record.derivation import Verdict
from symcavity.shapes import Ball

TRIES, ROUNDS, SETTLED = 20, 40, 1e-7
LOADS = (1, 1, 1, Rational(1, 4), 4, Rational(1, 10))  # times the seeded load: some theories hold for weak loads only


class Point:
    """Seeded values for everything in a single-site law."""

    def __init__(self, seed: int, exprs: list[Expr]) -> None:
        rng = random.Random(seed)  # noqa: S311 - seeded sampling, not cryptography
        self.values: dict[Any, Any] = {}
        quantities = sorted({q for e in exprs for q in site_quantities(e, Quenched)}, key=str)
        for q in quantities:
            values = q.family.values
            self.values[q] = rng.choice(values) if values else Rational(rng.randint(3, 30), 10)
        for node in sorted({a for e in exprs for a in e.atoms(Average)}, key=str):
            self.values[node] = Rational(rng.randint(5, 20), 10)
        for s in sorted(set().union(*(e.free_symbols for e in exprs)), key=str):
            if is_index(s) or not isinstance(s, Symbol):
                continue
            self.values[s] = Rational(str(round(sample_parameter(s, rng), 3)))

    def __call__(self, expr: Expr) -> Expr:
        """Put the values in."""
        return expr.xreplace(self.values)


def seeded_values(theory: Theory, seed: int) -> dict[Any, Any]:
    """Values for every parameter, the load where nothing fixes it, and finite laws for quenched parameters.

    Each point comes twice: with quenched parameters of both signs where no sign is declared, and with positive ones.
    """
    seed, positive = divmod(seed, 2)
    rng = random.Random(seed)  # noqa: S311 - seeded sampling, not cryptography
    values: dict[Any, Any] = {}
    system = theory.system
    drawn = [s for s in system.parameters if s not in theory.binding]  # components of a set that is known are counted
    for s, value in zip(drawn, sample_parameters(drawn, rng, system.ranges), strict=True):
        values[s] = Rational(str(round(value, 2)))
    if any(e.difference.has(SiteCount) for e in theory.equations):
        values |= {k.size: 60 if k.size == N else 40 + 10 * seed for k in (*system.kinds, N.kind)}
    else:
        most = 9 if seed < TRIES // 4 else 30  # what has no penalty needs more data than features
        sought = [alpha] if system.fixed else []
        ratios = [k.ratio for k in system.kinds if k.ratio.is_Symbol and k.ratio not in sought]
        values |= {ratio: Rational(rng.randint(4, most), 10) for ratio in ratios}
    for _ in range(max(len(system.fixed) - 1, 0)):
        values.pop(next(s for s in reversed(system.parameters) if s in values))
    scales = {
        q for law in system.laws.values() for f in law.fields for q in families([f.coupling.family.variance], Quenched)
    }
    for q in system.quenched:
        if q.law is None:
            half = Rational(1, 2)
            signed = q not in scales and not q.positive and not positive
            size = Rational(1 + seed // 2)  # some laws have only the trivial solution for small data
            values[q] = {size: Rational(3, 5), -size: Rational(2, 5)} if signed else {half: half, 3 * half: half}
            if named := compared(theory, q):
                every = dict.fromkeys([*values[q], *named])
                values[q] = dict.fromkeys(every, Rational(1, len(every)))
    return _with_sets(theory, _ordered(theory, values), rng)


def _ordered(theory: Theory, values: dict[Any, Any]) -> dict[Any, Any]:
    """Move the laws of quenched parameters until they are in the order that a solution assumes, such as two bounds."""
    out, plain = dict(values), {s: v for s, v in values.items() if isinstance(s, Symbol)}
    for condition in theory.assumed():
        gap = (condition.lhs - condition.rhs).xreplace(plain)
        own = [q for q in site_quantities(gap, Quenched) if q.family in values]
        rising = [q for q in own if gap.diff(q).is_positive]
        if not rising or Needs()(gap) != set(own):
            continue
        least = min(gap.xreplace(dict(zip(own, each, strict=True))) for each in product(*(out[q.family] for q in own)))
        if least < 0:
            upper = rising[0]
            out[upper.family] = {v - least / gap.diff(upper): p for v, p in out[upper.family].items()}
    return out


def compared(theory: Theory, family: Quenched) -> list[Expr]:
    """The numbers that a quenched parameter is compared with: a label without them would leave cases out."""
    tests = {test for e in theory.equations for test in e.difference.atoms(Eq, Ne)}
    found = (side for test in tests if families([test], Quenched) == [family] for side in test.args if side.is_number)
    return sorted(found, key=str)


def _with_sets(theory: Theory, values: dict[Any, Any], rng: random.Random) -> dict[Any, Any]:
    """A ball for every support function; the number of components follows from it."""
    for g, size in supports(theory).items():
        if g.shape is None:
            count = int(size) - 1 if size.is_Integer else 2
            values[g] = Ball(count, Rational(rng.randint(3, 9), 10))
        values = {k: v for k, v in values.items() if k not in size.free_symbols}
    return values


def _is_numerical(expr: Any) -> bool:
    """Whether an average has no value at many digits (those over balls and over polyhedra in the plane have)."""
    return any(not getattr(node, "has_many_digits", False) for node in expr.atoms(GaussianAverage, ImplicitAverage))


def solve_shared(theory: Theory, values: dict[Any, Any], dps: int = 15) -> Any:
    """Solve a theory at given values, once for all checks that ask for it.

    Raises
    ------
    SymcavityError
        As the solver does.
    """
    store = theory.memory.setdefault("solved", {})
    key = (dps, tuple(sorted((str(k), str(v)) for k, v in values.items())))
    if key not in store:
        try:
            with warnings.catch_warnings():
                for word in (JumpingLaw, NegativeEntropy, UnstableSolution):  # the equations hold there as well
                    warnings.simplefilter("ignore", word)
                store[key] = solve_theory(theory, values, dps)
        except SymcavityError as problem:
            store[key] = problem
    if isinstance(store[key], SymcavityError):
        raise store[key]
    return store[key]


def _points(theory: Theory) -> Iterator[dict[Any, Any]]:
    """Seeded values: those at which the state evolution settles, and a few others, since a search takes far longer."""
    late, known, seen = [], theory.memory.setdefault("settles", {}), set()
    for seed in range(TRIES):
        values = seeded_values(theory, seed)
        if alpha in values:
            values[alpha] *= LOADS[seed % len(LOADS)]
        point = tuple(sorted((str(k), str(v)) for k, v in values.items()))
        if point in seen:  # some seeds draw the same values
            continue
        seen.add(point)
        if seed not in known:
            known[seed] = _settles(theory, values)
        if known[seed]:
            yield values
        else:
            late.append(values)
    yield from late[: len(LOADS)] if theory.system.convex else late


def _settles(theory: Theory, values: dict[Any, Any]) -> bool:
    """Whether the state evolution leads to a solution; true where there is none to follow."""
    if theory.system.convex or theory.is_naive:
        return settles(theory, values)
    try:
        found = state_evolution(theory, values, ROUNDS).values.values()
    except UnsupportedLaw:
        return True
    except SymcavityError:
        return False
    return all(abs(v[-1] - v[-2]) < SETTLED * (1 + abs(v[-1])) for v in found)


def solved_point(theory: Theory, dps: int, *, sized: bool = False) -> tuple[Any, int, str]:
    """Solve a theory at the first seeded point that is feasible, with a number of sites if one is requested.

    Returns
    -------
    (solution, digits, where)
        The digits to which its formulas can be tested; the solution is None if no point was feasible.
    """
    numerical = any(_is_numerical(e.difference) for e in theory.equations)
    digits = 8 if numerical else dps - 10
    last = ""
    for values in _points(theory):
        if sized and not any(isinstance(k, SiteCount) for k in values):
            values[N] = Rational(60)
        try:
            solution = solve_shared(theory, values, 15 if numerical else dps)
        except SymcavityError as problem:
            last = str(problem).splitlines()[0]
            continue
        if solution.is_limit:
            last = "at the seeded points the solution is a limit, which the formulas do not reach"
            continue
        where = ", ".join(f"{k} = {v}" for k, v in values.items() if isinstance(k, Symbol)) or "seeded values"
        return solution, digits, where
    return None, 0, f"no seeded point could be solved: {last}"


def other_theory(theory: Theory, *, naive: bool) -> Theory:
    """The other analysis of the same system, derived once."""
    key = "naive" if naive else "cavity"
    if key not in theory.memory:
        theory.memory[key] = counterpart(theory, naive=naive)
    return theory.memory[key]


def scatter(theory: Theory, solution: SampledSolution, claim: Equation) -> Any:
    """The standard error of the difference of two sides, by what each independent set of samples makes of it."""
    gaps = []
    for number, part in enumerate(solution.parts):
        rule = one_set((e.difference for e in (*theory.equations, claim)), number)
        gaps.append(float(part[claim.difference.xreplace(rule)]))
    return np.std(gaps, ddof=1) / np.sqrt(len(gaps))


def compare_with_naive(theory: Theory, *, symmetric: bool) -> list[Verdict]:
    """Hold the load or the first second moment of the cavity theory against the naive one.

    A symmetry says that they agree.  Without one nothing is said: they may differ, and where they agree all the
    same, that is reported.
    """
    cavity = other_theory(theory, naive=False) if theory.is_naive else theory
    kind = "comparison with the naive theory"
    try:
        naive = theory if theory.is_naive else other_theory(theory, naive=True)
    except UnsupportedLaw as problem:  # a site that has no curvature but its feedback
        return [Verdict(kind, not symmetric, f"there is no naive theory: {problem.found}")]
    targets = [alpha] if theory.system.fixed else _moments(cavity) or list(cavity.order_parameters.values())
    details = []
    for values in _feasible(cavity):
        solution = solve_shared(cavity, values)
        if isinstance(solution, RestingSolution):  # where states vanish, another theory may have no limit
            continue
        a = mp.mpf(solution[targets[0]])
        try:
            b = mp.mpf(solve_shared(naive, values)[targets[0]])
        except SymcavityError as problem:
            return [Verdict(kind, not symmetric, f"the naive theory has no solution: {problem.found}")]
        agree = bool(abs(a - b) < mp.mpf("1e-9") * max(abs(a), abs(b)))
        details.append(f"{targets[0]}: cavity {mp.nstr(a, 8)}, naive {mp.nstr(b, 8)}")
        if not agree:
            return [Verdict(kind, not symmetric, details[-1])]
        if len(details) > 1:
            break
    if not details:
        return [Verdict(kind, None, "no seeded point could be solved, or all are at rest")]
    said = details[-1] if symmetric else f"they agree without a symmetry that was found ({details[-1]})"
    return [Verdict(kind, True, said)]


def _moments(theory: Theory) -> list[Any]:
    """The second moments of what a site of the kind without an echo hears from the kind that lost it, or of any."""
    found = [m for m in theory.order_parameters.values() if not m.has(SiteResponse)]
    heard = {q for f in theory.system.fields if f.hearer != theory.system.kinds[0] for q in f.states()}
    return [m for m in found if any(m.has(q) for q in heard)] or found


def _feasible(theory: Theory) -> Iterator[dict[Any, Any]]:
    """Seeded values at which a theory has a solution."""
    for values in _points(theory):
        try:
            solve_shared(theory, values)
        except SymcavityError:
            continue
        yield values
