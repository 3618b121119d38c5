"""One side of the system: insert a site, hear its echo, solve its law, give it an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from sympy import Add, Expr, KroneckerDelta, Mul, S, Sum, Symbol

from symcavity.algebra.signs import sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.method.average import (
    ParameterBook,
    carrier_state,
    covariance,
    second_component,
    self_coupling_mean,
    source_of,
)
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.quantities import FEATURE, INDEX, OTHER, SiteQuantity
from symcavity.model.system import Law, System
from symcavity.record.symbols import CavitySymbol, ComponentSymbol, OrderParameter
from symcavity.sites.averages import SiteEnsemble
from symcavity.sites.scalar import IllPosed, SiteSolution, check_denominators, solve_site


@dataclass
class HeardField:
    """A random field of the inserted site: its cavity field, self-couplings, source and statistics.

    Attributes
    ----------
    declared : RandomField
    eta : CavitySymbol
        The cavity field.
    source : SiteQuantity
        The source in the equation that carries the field.
    couplings : dict
        By the emission through which the site hears itself: the self-coupling symbol and its mean.
    vanishing : list
        Self-couplings of zero mean, through couplings that are independent of this field's: they drop out.
    origins : dict
        By the tag of a self-coupling: the field of the other side that the site shifts.
    """

    declared: RandomField
    eta: CavitySymbol
    source: SiteQuantity
    carrier: SiteQuantity | None
    factor: Expr
    couplings: dict[Expr, tuple[CavitySymbol, Expr]] = field(default_factory=dict)
    vanishing: list[CavitySymbol] = field(default_factory=list)
    origins: dict[str, RandomField] = field(default_factory=dict)

    @property
    def self_couplings(self) -> list[CavitySymbol]:
        """All self-couplings, those of zero mean last."""
        return [*(f for f, _ in self.couplings.values()), *self.vanishing]

    def origin(self, f: CavitySymbol) -> RandomField:
        """The field of the other side through which a self-coupling comes back."""
        return self.origins[f.tag]

    def effective(self) -> Expr:
        """The field of the inserted site: ``eta + sum of self-coupling * emission``."""
        if self.declared.components:
            (a, b), limits = *second_component(self.declared).items(), self.declared.components[1:]
            terms = [Sum(f * emission.xreplace({a: b}), (b, *limits)) for emission, (f, _) in self.couplings.items()]
            return self.eta + Add(*terms)
        return self.eta + Add(*(f * emission for emission, (f, _) in self.couplings.items()))


@dataclass
class Side:
    """The theory of one side's inserted site.

    Attributes
    ----------
    law : Law
    heard : list of HeardField
    covariance : dict
        Covariances of the cavity fields, in order parameters and the site's quenched parameters.
    generic : SiteSolution
        The solution with self-couplings as symbols.
    """

    law: Law
    heard: list[HeardField]
    covariance: dict[tuple[Symbol, Symbol], Expr]
    covariance_sums: dict[tuple[Symbol, Symbol], tuple[Expr, Expr]]
    naive: bool = False
    generic: SiteSolution | None = None
    signs: tuple[tuple[CavitySymbol, int], ...] = ()

    @property
    def side(self) -> str:
        """``'feature'`` or ``'datum'``."""
        return self.law.side

    def plain_sources(self) -> dict[SiteQuantity, Symbol]:
        """A plain symbol for each source."""
        return {h.source: Symbol(f"I{k or ''}", real=True) for k, h in enumerate(self.heard)}

    def effective_equations(self) -> list[Equation]:
        """The law of the inserted site, with cavity fields, self-couplings and sources."""
        rule = {h.declared.symbol: h.effective() for h in self.heard}
        out = []
        for equation in self.law.equations:
            sources = [h.source for h in self.heard if equation.difference.has(h.declared.symbol)]
            out.append(Equation(equation.lhs.xreplace(rule), equation.rhs.xreplace(rule) + Add(*sources)))
        return out

    def inner(self) -> HeardField:
        """The field over which branches are laid out: the one whose emission comes back, or the last."""
        coupled = [h for h in self.heard if h.couplings]
        return coupled[0] if coupled else self.heard[0]

    def ordered(self) -> list[HeardField]:
        """The fields with the inner one last."""
        inner = self.inner()
        return [h for h in self.heard if h is not inner] + [inner]

    def solve(self) -> None:
        """Solve the single-site law; choose the signs of the self-couplings that make it well-posed."""
        sources = self.plain_sources()
        text = f"The law of a {self.side} site"
        equations = [e.difference.xreplace(sources) for e in self.effective_equations()]
        pairs = [p.pair for p in self.law.pairs]
        symbols = [f for h in self.heard for f, _ in h.couplings.values()]
        last: IllPosed | None = None
        for choice in self._sign_choices(symbols):
            signed = {f: _signed(f, s) for f, s in choice.items()}
            try:
                solution = solve_site(
                    [e.xreplace(signed) for e in equations],
                    pairs,
                    self.law.unknowns,
                    self.inner().eta,
                    list(sources.values()),
                    text,
                )
                if any(choice.values()):
                    check_denominators(solution, [signed[f] for f, s in choice.items() if s], text)
            except IllPosed as problem:
                last = last or problem
                continue
            for h in self.heard:
                h.couplings = {e: (signed.get(f, f), mean) for e, (f, mean) in h.couplings.items()}
            self.generic = solution
            self.signs = tuple((signed[f], s) for f, s in choice.items() if s)
            return
        raise last or IllPosed(f"{text} has no solution.")

    def _sign_choices(self, symbols: list[CavitySymbol]) -> Iterator[dict[CavitySymbol, int]]:
        """Signs to try for the self-couplings through own states; none at all for a linear law as a last resort."""
        diagonal = [f for f in symbols if f in self._diagonal()]
        for signs in product((1, -1), repeat=len(diagonal)):
            yield {f: (signs[diagonal.index(f)] if f in diagonal else 0) for f in symbols}
        if diagonal and not self.law.pairs and self._is_linear():
            yield dict.fromkeys(symbols, 0)

    def _is_linear(self) -> bool:
        return all(
            not e.difference.diff(a).has(*self.law.unknowns) for e in self.law.equations for a in self.law.unknowns
        )

    def _diagonal(self) -> set[CavitySymbol]:
        """Self-couplings through the site's own states (others carry quenched signals)."""
        own = set(self.law.unknowns)
        return {f for h in self.heard for e, (f, _) in h.couplings.items() if e.has(*own)}

    def means(self) -> dict[Symbol, Expr]:
        """The mean of each self-coupling (zero on the feature side of the naive analysis)."""
        return {
            f: (S.Zero if self.naive and self.side == FEATURE else mean)
            for h in self.heard
            for f, mean in h.couplings.values()
        }

    def solution(self) -> SiteSolution:
        """The solution at the mean self-couplings."""
        assert self.generic is not None  # noqa: S101 - solve() comes first
        return self.generic.xreplace(self.means())

    def ensemble(self) -> SiteEnsemble:
        """The Gaussian ensemble of the site."""
        sources = self.plain_sources()
        order = self.ordered()
        return SiteEnsemble(
            self.side,
            self.solution(),
            tuple(h.eta for h in order),
            self.covariance,
            {h.carrier: (sources[h.source], h.eta, h.factor) for h in order},
        )

    def substitute(self, rule: dict[Any, Any]) -> None:
        """Replace order parameters in all statistics."""
        self.covariance = {k: v.xreplace(rule) for k, v in self.covariance.items()}
        for h in self.heard:
            h.couplings = {e: (f, mean.xreplace(rule)) for e, (f, mean) in h.couplings.items()}


def _signed(symbol: CavitySymbol, sign: int) -> CavitySymbol:
    if not sign:
        return symbol
    assumption = {"positive": True} if sign > 0 else {"negative": True}
    return CavitySymbol("F", symbol.side, symbol.tag, **assumption)


def build_side(system: System, side: str, book: ParameterBook, *, naive: bool) -> Side:
    """Insert a site on a side: cavity fields and self-couplings, with their statistics."""
    law = system.laws[side]
    other = system.laws[OTHER[side]]
    several = len(law.fields) > 1
    for each in system.laws.values():
        _refuse_several(each)
    heard = []
    for k, f in enumerate(law.fields):
        tag = str(k + 1) if several else ""
        pair = next(iter(second_component(f).items())) if f.components else ()
        one = HeardField(
            f,
            ComponentSymbol("T", side, pair[:1], tag) if pair else CavitySymbol("eta", side, tag),
            source_of(system, f).at_site(),
            carrier_state(system, f),
            law.coefficient(f),
        )
        for n, g in enumerate(other.fields):
            if not f.states():
                continue
            mean = book.close(self_coupling_mean(system, f, g))
            label = f"{k + 1}{n + 1}" if several or len(other.fields) > 1 else ""
            symbol = ComponentSymbol("F", side, pair, label) if pair else CavitySymbol("F", side, label)
            one.origins[symbol.tag] = g
            if mean == 0:
                if not (f.components or f.inner or g.components or g.inner):
                    one.vanishing.append(symbol)
            else:
                one.couplings[g.emission] = (symbol, _at_index(mean, side))
        heard.append(one)
    sums = {(a.eta, b.eta): covariance(a.declared, b.declared) for a in heard for b in heard}
    closed = {key: _at_index(book.close(contracted), side) for key, (_, contracted) in sums.items()}
    symmetric = {(a.eta, b.eta): closed[min_pair(a, b, heard)] for a in heard for b in heard}
    return Side(law, heard, symmetric, sums, naive)


def _refuse_several(law: Law) -> None:
    """Refuse a vector field beside another field."""
    vector = next((f for f in law.fields if f.components), None)
    if vector is not None and len(law.fields) > 1:
        others = " and ".join(str(f.as_sum) for f in law.fields if f is not vector)
        raise UnsupportedLaw(
            f"A {law.side} site hears the vector {vector.as_sum} together with {others}.",
            "one vector field a site, and no other field",
            "one vector of more components: the set of points (s, 0) and (0, r) of two sets that share a bound",
        )


def min_pair(a: HeardField, b: HeardField, heard: list[HeardField]) -> tuple[Symbol, Symbol]:
    """The pair in the order of the list, so that a covariance has one form."""
    first, second = sorted((a, b), key=heard.index)
    return first.eta, second.eta


def _at_index(expr: Expr, side: str) -> Expr:
    """The inserted site's quenched parameters, written at the canonical index."""
    return expr.xreplace(
        {q: q.xreplace({S.Zero: INDEX[side]}) for q in expr.atoms(SiteQuantity) if S.Zero in q.indices}
    )


def sign_from_mean(f: CavitySymbol, mean: Expr) -> tuple[OrderParameter, int] | None:
    """The sign that a self-coupling's sign implies for the one order parameter in its mean."""
    mean = mean.xreplace(dict.fromkeys(mean.atoms(KroneckerDelta), S.One))
    parameters = sorted(mean.atoms(OrderParameter), key=str)
    if len(parameters) != 1 or not (f.is_positive or f.is_negative):
        return None
    (parameter,) = parameters
    prefactor = Mul(*(mean / parameter).as_ordered_factors())
    if prefactor.has(parameter):
        return None
    known = sign_of(prefactor.xreplace({q: Symbol("v", positive=True) for q in prefactor.atoms(SiteQuantity)}))
    if known is None or known == 0:
        return None
    return parameter, known * (1 if f.is_positive else -1)
