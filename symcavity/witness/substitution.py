"""Witnesses of the substitution: the senders' declared equations solved at explicit couplings and messages.

The contribution of all others is the field of a site that the senders do not hear; nothing here splits a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from sympy import Expr, Mul

from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import BRUTE_FORCE, SYMBOLIC, Step, Verdict
from symcavity.record.symbols import DisorderAverage
from symcavity.witness.declared import Carrier, kind_of
from symcavity.witness.moments import coupling_moment, free_points
from symcavity.witness.registry import result, witness
from symcavity.witness.solved import held
from symcavity.witness.solved_world import Place, SolvedWorld
from symcavity.witness.statistics import coupling_variances, mean_over
from symcavity.witness.verbs import SMALL
from symcavity.witness.world import Open, same

# -- the substitution --------------------------------------------------------------------------------


@witness("substitution", "substitution_split")
def put(step: Step, _dps: int) -> list[Verdict]:
    """The claimed equations against the declared ones, in which the senders' states solve their own."""
    settled = SolvedWorld(step, 21)
    settled.settle()
    states = {q.family for q in settled.system.laws[settled.kind].unknowns}

    def fits(claim: Equation, row: Carrier) -> bool:
        try:
            points = free_points(settled.world, [claim, row.declared])
            return all(same(settled.gap(claim, row, env), 0) for env in points)
        except Open:  # an index of another kind
            return False

    ok = settled.pair_up(step.claims, fits)
    ok = ok and not any(q.family in states for c in step.claims for q in c.difference.atoms(SiteQuantity))
    return result(BRUTE_FORCE, ok, f"the declared equations with the states put in, {SMALL}")


@witness("substitution_field")
def field(step: Step, _dps: int) -> list[Verdict]:
    """Each name against the declared field, from senders that do not hear the site."""
    settled = SolvedWorld(step, 23)
    claimed = {c.lhs: c.rhs for c in step.claims}
    ok = set(claimed) == set(settled.names) and set(settled.names.values()) == set(settled.heard)
    for hearer, site in settled.places():
        apart = settled.apart(hearer, site)
        for name, f in settled.names.items():
            if ok and f.hearer == hearer:
                for env in settled.at(hearer, site, name):
                    true = apart[settled.world.key(name, env)]
                    ok = ok and same(settled.world.value(claimed[name], env), true)
    return result(BRUTE_FORCE, ok, f"what a site hears from senders that do not hear it, {SMALL}")


# -- averages ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CouplingPolynomial:
    """A polynomial of the second degree in independent unit variables, of which the couplings are linear functions.

    Attributes
    ----------
    constant : number
    linear, square : list
        By coupling.
    mixed : dict
        By pairs of couplings.
    """

    constant: Any
    linear: list[Any]
    square: list[Any]
    mixed: dict[tuple[int, int], Any]

    def mean(self) -> Any:
        """The mean over the couplings."""
        return self.constant + mp.fsum(self.square)

    def mean_product(self, other: CouplingPolynomial) -> Any:
        """The mean of the product of two such polynomials, for couplings that are signs."""
        mixed = mp.fsum(v * other.mixed[k] for k, v in self.mixed.items())
        return self.mean() * other.mean() + mp.fdot(self.linear, other.linear) + mixed

    def value(self, point: list[Any]) -> Any:
        """The value at given couplings."""
        squares = [x * x for x in point]
        mixed = mp.fsum(v * point[a] * point[b] for (a, b), v in self.mixed.items())
        return self.constant + mp.fdot(self.linear, point) + mp.fdot(self.square, squares) + mixed


def forms(settled: SolvedWorld, call: Callable[[], list[Any]]) -> list[CouplingPolynomial]:
    """What a call computes, as polynomials in the couplings.

    Raises
    ------
    ValueError
        If it is of a higher degree.
    """
    world = settled.world
    seen = coupling_variances(world, call)
    keys = list(seen)
    truth = call()
    mixed = mp.cholesky(mp.matrix([[coupling_moment(world, x, y) for y in keys] for x in keys]))
    point = list(mp.lu_solve(mixed, mp.matrix([world.number(key, state=True) for key in keys])))

    def at(*moved: tuple[int, int]) -> Any:
        for k, key in enumerate(keys):
            world.given[key] = mp.fsum(sign * mixed[k, place] for place, sign in moved)
        return call()

    places = range(len(keys))
    try:
        none, up, down = at(), [at((a, 1)) for a in places], [at((a, -1)) for a in places]
        both = {(a, b): at((a, 1), (b, 1)) for a in places for b in places if a < b}
    finally:
        for key in keys:
            world.given.pop(key, None)
    out = []
    for k, true in enumerate(truth):
        zero = none[k]
        linear = [(u[k] - d[k]) / 2 for u, d in zip(up, down, strict=True)]
        square = [(u[k] + d[k]) / 2 - zero for u, d in zip(up, down, strict=True)]
        crossed = {(a, b): v[k] - up[a][k] - up[b][k] + zero for (a, b), v in both.items()}
        out.append(CouplingPolynomial(zero, linear, square, crossed))
        if not same(out[-1].value(point), true):
            raise ValueError("the quantity that is averaged is of a higher degree in the couplings")
    return out


def _factors(settled: SolvedWorld, body: Expr) -> list[Expr]:
    """The names that an average multiplies, or all of it where there is none."""
    factors = [base for f in Mul.make_args(body) for base, n in [f.as_base_exp()] for _ in range(int(n))]
    known = {name.family for name in settled.names}
    if len(factors) <= 2 and all(getattr(f, "family", None) in known for f in factors):
        return factors
    return [body]


def _is_complete(settled: SolvedWorld, factors: Iterable[list[Expr]]) -> bool:
    """Whether the mean of each name, and of each product of two at one site, is claimed."""
    told = {tuple(sorted(str(getattr(q, "family", None)) for q in f)) for f in factors}
    expected: set[tuple[str, ...]] = {(str(name.family),) for name in settled.names}
    for (a, f), (b, g) in combinations_with_replacement(settled.names.items(), 2):
        if f.hearer == g.hearer:
            expected.add(tuple(sorted(str(q.family) for q in (a, b))))
    return bool(expected) and expected <= told


@witness("substitution_statistics")
def statistics(step: Step, _dps: int) -> list[Verdict]:
    """Exact averages over all couplings at fixed messages.

    At a site whose own message is among those that are summed, one formula for each average must hold; at a site
    0 that hears all of them, every formula: there is no message of its own that could be missing.
    """
    settled = SolvedWorld(step, 22)
    claims = [c for c in step.claims if isinstance(c.lhs, DisorderAverage) and kind_of(c) in settled.hearers]
    factors = {c.lhs: _factors(settled, c.lhs.args[0]) for c in claims}
    ok = len(claims) == len(step.claims) and _is_complete(settled, factors.values())
    for hearer in settled.hearers if ok else ():
        mine = [c for c in claims if kind_of(c) == hearer]
        ok = ok and all(_held(settled, mine, factors, (hearer, 0)).values())
        inside = _held(settled, mine, factors, (hearer, 1)) if ok else {}
        ok = ok and {c.lhs for c in mine} == {c.lhs for c, good in inside.items() if good}
    return result(BRUTE_FORCE, ok, f"averages over all couplings at fixed messages, {SMALL}")


def _held(
    settled: SolvedWorld, claims: list[Equation], factors: dict[Expr, list[Expr]], place: Place
) -> dict[Equation, bool]:
    """Which claims hold at a site."""
    world = settled.world
    points = [(c, env) for c in claims for env in settled.at(*place, c)]
    wanted = [(q, env) for c, env in points for q in factors[c.lhs]]

    def call() -> list[Any]:
        world.given.update(settled.apart(*place))
        return [world.value(q, env) for q, env in wanted]

    found = iter(forms(settled, call))
    out = dict.fromkeys(claims, True)
    for claim, env in points:
        first, *second = [next(found) for _ in factors[claim.lhs]]
        true = first.mean_product(second[0]) if second else first.mean()
        out[claim] = out[claim] and same(world.value(claim.rhs, env), true)
    return out


@witness("substitution_law")
def law(step: Step, _dps: int) -> list[Verdict]:
    """What the claimed law and the declared one differ by: nothing on average, nothing of others' messages."""
    settled = SolvedWorld(step, 24)

    ok = settled.pair_up(step.claims, lambda claim, row: _is_law(settled, claim, row))
    return result(BRUTE_FORCE, ok, f"the declared law averaged over all couplings, {SMALL}")


def _is_law(settled: SolvedWorld, claim: Equation, row: Carrier) -> bool:
    world = settled.world
    points = settled.at(row.kind, 1, claim, row.declared)

    def call() -> Any:
        settled.name(row.kind, 1)
        return mp.matrix([settled.gap(claim, row, env) for env in points])

    try:
        before = call()
    except Open:  # an index of another kind
        return False
    moved = {
        key: 2 * world.number(key, state=True) + 1
        for other, k in settled.places()
        if (other, k) != (row.kind, 1)
        for q in settled.system.laws[other].unknowns
        if q.family not in world.defined
        for key in [world.key(q, env) for env in settled.at(other, k, q)]
    }
    world.given.update(moved)
    after = call()
    for key in moved:
        del world.given[key]
    if not all(map(same, before, after)):
        return False
    return all(same(mean, 0) for mean in mean_over(world, coupling_variances(world, call), call))


# -- where it leads, and where it does not apply -----------------------------------------------------


@witness("substitution_agreement")
def agreement(step: Step, dps: int) -> list[Verdict]:
    """The statistics of the inserted sites, by their closures where these suffice, and at a solved point."""
    theory = step.evidence["theory"]
    gaps = [claim.lhs.xreplace(theory.closures) - claim.rhs for claim in step.claims]
    proved = [Verdict(SYMBOLIC, True, "the closures of the inserted sites, put in")] if _vanish(gaps) else []
    return proved + held(theory, step.claims, dps)


def _vanish(gaps: list[Expr]) -> bool:
    return all(gap.expand() == 0 for gap in gaps)


@witness("no_substitution")
def refused(step: Step, _dps: int) -> list[Verdict]:
    """The declared equations of the kind do not give its states as linear functions of what it hears."""
    settled = SolvedWorld(step, 25)
    law = settled.system.laws[settled.kind]
    own = any(f.sender == settled.kind for f in law.fields)
    ok = own or bool(settled.declared.pairs[settled.kind]) or _is_bent(settled) or _is_open(settled)
    return result(BRUTE_FORCE, ok, f"the declared equations of a {settled.kind}, {SMALL}", "it applies")


def _is_bent(settled: SolvedWorld) -> bool:
    """Whether the equations are not linear: along a line through states and couplings they have a curvature."""
    world = settled.world
    states = settled.unknowns(1)
    keys = [*states, *coupling_variances(world, lambda: settled.residuals(1))]
    base = [world.number(key, state=True) for key in keys]

    def along(t: int) -> list[Any]:
        world.given.update({key: t * value for key, value in zip(keys, base, strict=True)})
        return settled.residuals(1)

    low, zero, one, two = (along(t) for t in (-1, 0, 1, 2))
    for key in keys:
        del world.given[key]
    bends = [(a + c - 2 * b, b + d - 2 * c) for a, b, c, d in zip(low, zero, one, two, strict=True)]
    return not all(same(bend, 0) for pair in bends for bend in pair)


def _is_open(settled: SolvedWorld) -> bool:
    """Whether the equations leave the states undetermined."""
    try:
        settled.settle()
    except ZeroDivisionError:  # a singular matrix
        return True
    return False
