"""Couplings that stand in one combination only: that combination is a coupling, and its sums are single fields."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sympy import Add, Basic, Expr, Mul, S, Sum, cancel, expand_mul, sqrt

from symcavity.model.couplings import Coupling, correlation_of
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting, sides, with_sides
from symcavity.model.site_sums import kind_of_sum


@dataclass(frozen=True)
class Pair:
    """Two couplings that stand as ``first + share*second`` only, and the coupling that this is."""

    first: Coupling
    second: Coupling
    share: Expr
    whole: Coupling

    def meaning(self, whole: SiteQuantity) -> Expr:
        """The combination at the sites of one coupling."""
        return self.first[whole.indices] + self.share * self.second[whole.indices]


class Combined(Rewriting):
    """A loss of differences, ``Sum((x[mu, i] - z[mu, i])*w[i], (i, 1, N))``, hears ``y = x - z`` alone.

    The sums of both couplings over what a sender emits then make one field instead of two, whose average has one
    Gaussian variable.

    Attributes
    ----------
    pairs : list of Pair
    """

    key = "combined"

    def __init__(self, declaration: Declaration) -> None:
        self.pairs: list[Pair] = []
        self._names = declaration.names | {"u", "v"}

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with one coupling for each such combination."""
        while (found := self._found(declaration)) is not None:
            declaration, pair = found
            self.pairs.append(pair)
        return declaration

    def observable(self, expr: Expr, _kind: Kind | None = None) -> Expr:
        """Return an observable with these couplings; as it is, where it holds one without its partner."""
        for pair in self.pairs:
            reading = _Reading(pair.first, pair.second, pair.whole, pair.share)
            new = reading.read(expr)
            expr = expr if reading.fails else new
        return expr

    @property
    def symbols(self) -> dict[Expr, Expr]:
        """The combination that each coupling replaces."""
        return {pair.whole.at_site(): pair.meaning(pair.whole.at_site()) for pair in self.pairs}

    def steps(self, make: Any) -> list[Any]:
        """The combination that each coupling replaces."""
        if not self.pairs:
            return []
        claims = [Equation(whole, meaning) for whole, meaning in self.symbols.items()]
        return [make(self.key, "combined", claims, data={"couplings": list(self.symbols)}, rests_on=("problem",))]

    def _found(self, declaration: Declaration) -> tuple[Declaration, Pair] | None:
        """The declaration with the next combination as a coupling, and that pair."""
        couplings = sorted(families(declaration.expressions, Coupling), key=lambda x: x.name)
        for first, second in combinations(couplings, 2):
            if not _may_combine(first, second, couplings):
                continue
            stand_in = first.copied(fresh_name(self._names, "y", f"y_{first.name}_{second.name}"), {}, {})
            reading = _Reading(first, second, stand_in)
            new = declaration.mapped(reading.entry)
            if reading.fails or reading.share is None:
                continue
            pair = _pair(first, second, reading.share, stand_in.name)
            placed = {q for e in new.expressions for q in site_quantities(e, Coupling) if q.family == stand_in}
            return new.mapped(_Renamed({q: pair.whole[q.indices] for q in placed})), pair
        return None


def _may_combine(first: Coupling, second: Coupling, every: list[Coupling]) -> bool:
    """Whether two couplings are of one shape, between two kinds of sites, and correlated with none but each other."""
    linked = [{x, other} for x in every for other in x.correlation]
    plain = not (first.components or second.components) and first.slots == second.slots
    alone = all(link == {first, second} for link in linked if link & {first, second})
    return plain and alone and first.slots[0] != first.slots[1] and first.name != second.name


def _pair(first: Coupling, second: Coupling, share: Expr, name: str) -> Pair:
    """The combination of two couplings as a coupling with its moments."""
    cross = 2 * share * correlation_of(first, second) * sqrt(first.variance * second.variance)
    variance = first.variance + share**2 * second.variance + cross
    mean = first.mean + share * second.mean
    between = tuple(kind.index for kind in first.slots)
    return Pair(first, second, share, Coupling(name, variance=variance, between=between, mean=mean))


@dataclass(frozen=True)
class _Renamed:
    """Puts couplings in the place of others, in an entry of a declaration."""

    rule: dict[SiteQuantity, Expr]

    def __call__(self, entry: Any) -> Any:
        return entry.xreplace(self.rule) if isinstance(entry, Basic) else entry


class _Reading:
    """One pass over an expression: sums of two couplings as sums of their combination.

    Attributes
    ----------
    share : Expr or None
        What the second coupling is multiplied by in the combination, once one is found.
    fails : bool
        Whether one of them stands somewhere without the other, or in another combination.
    """

    def __init__(self, first: Coupling, second: Coupling, whole: Coupling, share: Expr | None = None) -> None:
        self.both, self.whole, self.share, self.fails = (first, second), whole, share, False

    def _holds(self, expr: Any) -> bool:
        return isinstance(expr, Basic) and any(q.family in self.both for q in site_quantities(expr, Coupling))

    def entry(self, entry: Any) -> Any:
        """An entry of a declaration in the combination."""
        return with_sides(entry, [self.read(side) for side in sides(entry)])

    def read(self, expr: Any) -> Any:
        """The expression in the combination."""
        if self.fails or not self._holds(expr):
            return expr
        if isinstance(expr, SiteQuantity):
            self.fails = True
            return expr
        if not isinstance(expr, Expr):  # a case, or a condition
            return expr.func(*map(self.read, expr.args))
        kept: list[Expr] = []
        found: dict[Any, tuple[Expr, list[Expr], list[Expr]]] = {}
        for term in Add.make_args(expr):
            if not self._holds(term):
                kept.append(term)
                continue
            factor, total = term.as_independent(Sum, as_Add=False)
            if not self._collect(factor, total, kept, found):
                kept.append(self._inside(term))
        for limits, (factor, *parts) in found.items():
            body = self._whole(Add(*parts[0]), Add(*parts[1]))
            kept.append(factor * Sum(self.read(body), limits))
        return Add(*kept)

    def _inside(self, term: Expr) -> Expr:
        if isinstance(term, Sum):
            return Sum(self.read(term.function), *term.limits)
        return term.func(*map(self.read, term.args))

    def _collect(self, factor: Expr, total: Expr, kept: list[Expr], found: dict[Any, Any]) -> bool:
        """Take a sum over sites apart into what stands with each coupling; False where none stands in its terms."""
        kind = kind_of_sum(total.limits[0]) if isinstance(total, Sum) and len(total.limits) == 1 else None
        if kind is None or self._holds(factor):
            return False
        index = total.limits[0][0]
        at = kind.index if not any(kind.index in q.indices for q in site_quantities(total.function)) else index
        parts: tuple[list[Expr], ...] = ([], [], [])
        for part in Add.make_args(expand_mul(total.function.xreplace({index: at}))):
            direct = [q for q in Mul.make_args(part) if isinstance(q, SiteQuantity) and q.family in self.both]
            if len(direct) == 1 and at in direct[0].indices:
                parts[self.both.index(direct[0].family)].append(part / direct[0] * self.whole[direct[0].indices])
            else:
                parts[2].append(part)
        if not (parts[0] or parts[1]):
            return False
        if parts[2]:
            kept.append(factor * Sum(self.read(Add(*parts[2])), (at, *total.limits[0][1:])))
        limits = (at, *total.limits[0][1:])
        first, *known = found.setdefault(limits, (factor, [], []))
        for mine, theirs in zip(known, parts[:2], strict=True):
            mine += [factor / first * part for part in theirs]
        return True

    def _whole(self, one: Expr, other: Expr) -> Expr:
        """What the combination is multiplied by, if the two stand in it."""
        share = cancel(other / one) if one != 0 else S.Zero
        if share == 0 or site_quantities(share) or share.has(Sum) or self.share not in (None, share):
            self.fails = True
            return one + other
        self.share = share
        return one
