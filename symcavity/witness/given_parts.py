"""Witness of what a site has beside the given parts of its fields: instances whose couplings are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Add, Expr, S

from symcavity.evaluate.solutions.given_fields import GivenNumbers
from symcavity.finite.minimum import solve_instance
from symcavity.finite.observables import Reader
from symcavity.finite.redrawn import drawn_again, varied
from symcavity.finite.setup import prepare
from symcavity.method.naming import at_zero
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import N, SiteCount
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import SIMULATION, Step, Verdict
from symcavity.record.symbols import DisorderAverage
from symcavity.witness.points import solved_point
from symcavity.witness.registry import result, witness

SIZE, SEEDS, DRAWS, LIMIT, ALLOWED = 60, 8, 12, 5.0, 5.0  # ALLOWED: parts in N that a finite size may contribute


class Redrawn:
    """Means over what varies in one instance: over two halves of the draws, so that products of two are unbiased."""

    def __init__(self, step: Step, rows: dict[Any, np.ndarray]) -> None:
        pair = step.evidence["pair"]
        self.bodies = {at_zero(name, kind): body for name, (kind, body, _) in pair.given.meanings.items()}
        self.names = {at_zero(name, kind): name for name, (kind, *_) in pair.given.meanings.items()}
        self.halves = {body: (row[::2].mean(0), row[1::2].mean(0)) for body, row in rows.items()}

    def value(self, claim: Any) -> float:
        """The mean over the sites of the right-hand side of a claim."""
        return float(sum(self._term(term) for term in Add.make_args(claim.rhs)))

    def covariance(self, one: Expr, other: Expr) -> float:
        """The mean over the sites of the covariance of two quantities that they send."""
        return float(np.mean(self.halves[one * other])) - self._product(one, other)

    def _product(self, one: Expr, other: Expr) -> float:
        (a, b), (c, d) = self.halves[one], self.halves[other]
        return float(np.mean(a * d + b * c)) / 2

    def _term(self, term: Expr) -> float:
        factor, rest = term.as_coeff_Mul()
        if isinstance(rest, DisorderAverage):
            (body,) = [b for b in self.halves if _holds(rest, b)]
            return float(factor) * float(np.mean(self.halves[body]))
        inside = rest.body if isinstance(rest, Average) else rest
        known = {**self.names, **{name: name for name in self.names.values()}}
        named = {known[q]: int(power) for q, power in inside.as_powers_dict().items()}
        by_name = {self.names[zero]: body for zero, body in self.bodies.items()}
        one, other = [by_name[q] for q, power in named.items() for _ in range(power)]
        return float(factor) * self._product(one, other)


def _holds(node: Any, body: Expr) -> bool:
    (kind,) = {k for q in body.atoms(SiteQuantity) for k in q.site}
    return bool(node == DisorderAverage(body.xreplace({kind.index: S.Zero})))


def _agrees(value: float, seen: list[float]) -> bool:
    error = float(np.std(seen, ddof=1)) / np.sqrt(SEEDS)
    return bool(abs(value - np.mean(seen)) < LIMIT * error + ALLOWED / SIZE * abs(value))


@witness("two_sites_given")
def given_parts(step: Step, _dps: int) -> list[Verdict]:
    """Covariances and overlaps of two draws against instances; mean responses have the mean that the theory has."""
    pair = step.evidence["pair"]
    solution, _, where = solved_point(pair.theory, 15)
    if solution is None:
        return [Verdict(SIMULATION, None, where)]
    numbers = GivenNumbers(solution, pair.given)
    names = {at_zero(name, kind): name for name, (kind, *_) in pair.given.meanings.items()}
    answers = [c for c in step.claims if c.rhs.has(SiteResponse)]
    ok = set(pair.given.overlaps) | set(names) == {c.lhs for c in step.claims}
    for claim in answers:
        kind, body, _ = pair.given.meanings[names[claim.lhs]]
        ok &= bool(claim.rhs == DisorderAverage(body.xreplace({kind.index: S.Zero})))
        found, whole = numbers.kinds[kind].mean(names[claim.lhs]), float(solution[Average(body)])
        ok &= abs(found - whole) <= abs(whole) / SIZE**2  # a response may vanish
    instances = [Redrawn(step, rows) for rows in _tables(pair, solution)]
    for claim in step.claims:
        if claim not in answers:
            kind = pair.given.meanings[names[claim.lhs]][0] if claim.lhs in names else None
            value = numbers.overlaps[claim.lhs] if kind is None else numbers.kinds[kind].mean(names[claim.lhs])
            ok &= _agrees(value, [one.value(claim) for one in instances])
    for (a, b), name in pair.given.names.items():
        if a.sent is not None and b.sent is not None:
            ok &= _agrees(numbers.kinds[a.kind].mean(name), [one.covariance(a.sent, b.sent) for one in instances])
    where = f"{SEEDS} instances of N = {SIZE}, {DRAWS} draws each"
    return result(SIMULATION, bool(ok), where, f"{where} differ")


def _tables(pair: Any, solution: Any) -> Any:
    """What the sites of instances send, each time that what varies is drawn again."""
    system = pair.theory.system
    values = {**solution.given.exact, **solution.beside}
    setup = prepare(system, {k: v for k, v in values.items() if not isinstance(k, SiteCount) and k != N})
    bodies = dict.fromkeys(b for _, b, _ in pair.given.meanings.values() if not b.has(SiteResponse))
    for seed in range(SEEDS):
        first = setup.instance(SIZE, seed)
        rows: dict[Any, list[np.ndarray]] = {b: [] for b in bodies}
        for instance in drawn_again(first, varied(first, list(pair.over)), DRAWS):
            reader = Reader(setup.written, instance, solve_instance(system, instance, setup.method))
            for b in bodies:
                rows[b].append(reader.site_values(b))
        yield {b: np.stack(found) for b, found in rows.items()}
