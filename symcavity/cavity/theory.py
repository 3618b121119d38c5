"""The cavity theory of a bipartite system: both sides' single-site theories, and the closed equations."""

from __future__ import annotations

from sympy import Expr, S, Sum, Symbol, sqrt

from symcavity.algebra.signs import sign_of
from symcavity.cavity.averages import SiteEnsemble
from symcavity.cavity.close import Closed, eliminate, tidy_arguments
from symcavity.cavity.nodes import OrderParameter
from symcavity.cavity.sides import Side, build_side, sign_from_mean
from symcavity.cavity.statistics import ParameterBook
from symcavity.declare.quantities import (
    DATUM,
    FEATURE,
    INDEX,
    SIZE,
    Average,
    Global,
    N,
    Quenched,
    SiteQuantity,
    SiteResponse,
    alpha,
    site_quantities,
)
from symcavity.declare.system import BipartiteSystem, Equation
from symcavity.errors import DeclarationError


def side_of(body: Expr) -> str:
    """The side of a single-site expression."""
    found = {slot for q in site_quantities(body) for slot in q.site}
    found |= {slot for r in body.atoms(SiteResponse) for slot in r.state.site}
    if len(found) != 1:
        raise DeclarationError(f"{body} is not a quantity of one site.", "quantities of one side, at one index")
    return found.pop()


class Theory:
    def __init__(self, system: BipartiteSystem, *, naive: bool) -> None:
        self.system, self.is_naive = system, naive
        self.book = ParameterBook()
        self.sides = {side: build_side(system, side, self.book, naive=naive) for side in (FEATURE, DATUM)}
        for side in self.sides.values():
            side.solve()
        for side in self.sides.values():
            for f, mean in ((f, m) for h in side.heard for f, m in h.couplings.values()):
                found = sign_from_mean(f, mean)
                if found and not naive:
                    self._sign(*found)
        self.closures = self._closures()
        self.global_equations = [
            Equation(self.sides[side].ensemble().average(body), S.Zero) for side, body in system.global_conditions
        ]
        self.fixed_equations = [self._fixed(e) for e in system.fixed]
        self.closed = self._close()

    def _sign(self, symbol: OrderParameter, value: int) -> None:
        if symbol.is_positive or symbol.is_negative:
            return
        signed = self.book.sign(symbol, value)
        for side in self.sides.values():
            side.substitute({symbol: signed})

    def _closures(self) -> dict[OrderParameter, Expr]:
        while True:
            out = {symbol: self.observable(meaning, raw=True) for symbol, meaning in self.book.meanings.items()}
            for symbol, value in out.items():
                if symbol.is_positive is None and symbol.is_negative is None and sign_of(value):
                    self._sign(symbol, sign_of(value))
                    break
            else:
                return out

    def observable(self, expr: Expr, *, raw: bool = False) -> Expr:
        """An observable in terms of order parameters, globals and parameters."""
        rule: dict[Expr, Expr] = {}
        if not raw:
            for symbol, meaning in self.book.meanings.items():
                rule[meaning] = symbol
        for node in expr.atoms(Average, Sum):
            if node in rule:
                continue
            body = node.args[0]
            ensemble = self.sides[side_of(body)].ensemble()
            if isinstance(node, Average):
                rule[node] = ensemble.average(body)
            else:
                inner = ensemble.at_site(body)
                (index, _, size), = node.limits
                rule[node] = size * inner if not inner.has(SiteQuantity) else Sum(inner, (index, 1, size))
        return tidy_arguments(expr.xreplace(rule))

    def _fixed(self, equation: Equation) -> Equation:
        return Equation(self.observable(equation.lhs), equation.rhs)

    @property
    def order_parameters(self):
        return dict(self.book.meanings)

    @property
    def equations(self):
        return [Equation(s, v) for s, v in self.closures.items()] + self.global_equations + self.fixed_equations

    def _close(self) -> Closed:
        rule = {}
        self.units: dict[Symbol, Expr] = {}
        for g in self.system.globals:
            scale = self._unit(g)
            hat = OrderParameter(f"{g.name}_hat")
            rule[g] = hat * scale
            self.units[g] = hat * scale
        exprs = [e.difference.xreplace(rule) for e in self.equations]
        hats = [v.free_symbols & set(v.atoms(OrderParameter)) for v in self.units.values()]
        unknowns = [*self.book.meanings] + [h for hs in hats for h in sorted(hs, key=str) if h.name.endswith("_hat")]
        return eliminate(exprs, unknowns, [alpha])

    def _unit(self, g: Global) -> Expr:
        for side in self.sides.values():
            if any(e.difference.has(g) for e in side.law.equations):
                inner = side.inner().eta
                return sqrt(side.covariance[inner, inner])
        return S.One


def derive(system: BipartiteSystem, *, naive: bool) -> Theory:
    return Theory(system, naive=naive)
