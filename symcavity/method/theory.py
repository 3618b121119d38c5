"""The cavity theory of a bipartite system: both sides' single-site theories, and the closed equations."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import Any, Self

from sympy import Expr, S, Sum, Symbol, sqrt, sympify

from symcavity.algebra.signs import sign_of
from symcavity.errors import DeclarationError, NoClosedForm
from symcavity.method.average import ParameterBook
from symcavity.method.eliminate import Closed, eliminate, simplest, tidy_arguments
from symcavity.method.inserted import Side, build_side, sign_from_mean
from symcavity.method.set_side import as_hearing
from symcavity.model.equations import Equation
from symcavity.model.quantities import (
    DATUM,
    FEATURE,
    SIZE,
    Average,
    Family,
    Quenched,
    SiteQuantity,
    SiteResponse,
    alpha,
    site_quantities,
)
from symcavity.model.system import System
from symcavity.record.symbols import OrderParameter
from symcavity.sites.averages import SiteEnsemble
from symcavity.sites.scalar import IllPosed


def side_of(body: Expr) -> str:
    """The side of a single-site expression; averages inside it are numbers."""
    body = body.xreplace(dict.fromkeys(over_sites(body), S.One))
    found = {slot for q in site_quantities(body) for slot in q.site}
    found |= {slot for r in body.atoms(SiteResponse) for slot in r.state.site}
    if len(found) != 1:
        raise DeclarationError(f"{body} is not a quantity of one site.", "quantities of one side, at one index")
    return found.pop()


class SideView:
    """What the theory says of one side's site.

    Attributes
    ----------
    equation : Equation or tuple of Equation
        The law of the inserted site, with its cavity field, self-coupling and source.
    field : dict
        The covariances of the cavity fields.
    self_coupling : dict
        The mean of each self-coupling.
    solution : dict
        Each state as a function of the cavity field.
    response : dict
        The average response of each state.
    """

    def __init__(self, theory: Theory, side: Side) -> None:
        self._theory, self._side = theory, side

    @property
    def equation(self) -> Any:
        """The equations of the inserted site, in which the fields are explicit."""
        found = self._side.effective_equations()
        return found[0] if len(found) == 1 else tuple(found)

    @property
    def field(self) -> dict[tuple[Symbol, Symbol], Expr]:
        """Covariances of the cavity fields (their means vanish)."""
        return dict(self._side.covariance)

    @property
    def variance(self) -> Expr:
        """The variance of the cavity field (of the inner one, where there are several)."""
        eta = self._side.inner().eta
        return self._side.covariance[eta, eta]

    @property
    def self_coupling(self) -> Any:
        """The mean self-coupling; a dictionary where there are several."""
        means = self._side.means()
        return next(iter(means.values())) if len(means) == 1 else means

    @property
    def solution(self) -> dict[SiteQuantity, Expr]:
        """The states as functions of the cavity field, at zero sources."""
        found = self._side.solution().without_sources()
        return {q: found.expression(q) for q in found.unknowns}

    @property
    def response(self) -> dict[SiteQuantity, Expr]:
        """The responses of the states, averaged over the field, for one site."""
        ensemble = self._side.ensemble()
        carriers = [h.carrier for h in self._side.ordered()]
        inner = carriers[-1]
        return {q: ensemble.at_site(SiteResponse(q, inner)) for q in self._side.law.unknowns}

    @property
    def regime(self) -> SiteQuantity:
        """For a law given by a convex set: 0 inside, 1 touching at one point, 2 on a face, 3 the whole set."""
        found = getattr(self._side.solution(), "regime", None)
        if found is None:
            raise DeclarationError(f"The {self._side.side} sites have no convex set.", "laws with a support function")
        return found

    @property
    def ensemble(self) -> SiteEnsemble:
        """The Gaussian ensemble of a site, for averages of one's own."""
        return self._side.ensemble()

    def __str__(self) -> str:
        equations = self.equation if isinstance(self.equation, tuple) else (self.equation,)
        lines = [f"{self._side.side} site", *(f"  {e}" for e in equations)]
        lines += [f"  <{a} {b}> = {c}" for (a, b), c in self.field.items()]
        lines += [f"  <{f}> = {m}" for f, m in self._side.means().items()]
        lines += [f"  {q} = {v}" for q, v in self.solution.items()]
        return "\n".join(lines)

    __repr__ = __str__


class Theory:
    """A derived theory: the single sites, the closed equations, and what elimination makes of them.

    Attributes
    ----------
    system : System
        What it was derived from.
    sides : dict
        The inserted site of each side.
    closures : dict
        Each order parameter by the single-site average that it stands for.
    global_equations, fixed_equations : list of Equation
        The conditions that global variables and fixed averages add to them.
    binding : dict
        The convex sets that were put in, with the numbers of components that they fix.
    memory : dict
        What the files above have computed of this theory, each under a key of its own.
    """

    PARTS = ("is_naive", "binding", "system", "sides", "_book", "closures", "global_equations", "fixed_equations")

    def __init__(self, system: System, *, naive: bool = False) -> None:
        self.is_naive = naive
        self.binding: dict[Any, Any] = {}
        self.memory: dict[Any, Any] = {}
        self._solve_sites(system)
        for side in self.sides.values():
            for f, mean in [pair for h in side.heard for pair in h.couplings.values()]:
                found = sign_from_mean(f, mean)
                if found and not (naive and side.side == FEATURE):
                    self._sign(*found)
            for h in side.heard:
                self._variance(side.covariance[h.eta, h.eta])
        self.closures = self._closures()
        self.global_equations = [
            Equation(tidy_arguments(self.sides[side].ensemble().average(body)), S.Zero)
            for side, body in system.global_conditions
        ]
        self.fixed_equations = [Equation(self.observable(e.lhs), e.rhs) for e in system.fixed]

    def replace(self, **parts: Any) -> Self:
        """Return a theory of which some parts are others; nothing that was computed of the old ones is kept."""
        new = object.__new__(type(self))
        vars(new).update({name: getattr(self, name) for name in self.PARTS} | parts, memory={})
        return new

    def _solve_sites(self, system: System) -> None:
        """Solve both single-site laws; if they need it, take quenched parameters of unknown sign as positive."""
        try:
            self._build(system)
        except IllPosed:
            unsigned = [q for q in system.quenched if not q.positive and q.law is None]
            for size in range(1, len(unsigned) + 1):
                for chosen in combinations(unsigned, size):  # as few as will do: labels have both signs
                    try:
                        self._build(system.assuming_positive(chosen))
                    except IllPosed:
                        continue
                    return
            raise

    def _build(self, system: System) -> None:
        self.system = system
        self._book = ParameterBook()
        self.sides = {
            side: as_hearing(build_side(system, side, self._book, naive=self.is_naive)) for side in (FEATURE, DATUM)
        }
        for side in self.sides.values():
            side.solve()

    # -- the closed system -----------------------------------------------------------------------

    def _sign(self, symbol: OrderParameter, value: int) -> None:
        if symbol.is_positive or symbol.is_negative or symbol not in self._book.meanings:
            return
        signed = self._book.sign(symbol, value)
        for side in self.sides.values():
            side.substitute({symbol: signed})

    def _variance(self, expr: Expr) -> None:
        """The order parameter of a variance is positive (as is the variance of a coupling)."""
        found = sorted(expr.atoms(OrderParameter), key=str)
        if len(found) == 1:
            prefactor = (expr / found[0]).xreplace({q: Symbol("v", positive=True) for q in expr.atoms(SiteQuantity)})
            if sign_of(prefactor) == 1:
                self._sign(found[0], 1)

    def _closures(self) -> dict[OrderParameter, Expr]:
        """Each order parameter by the single-site average that it stands for; learn signs on the way."""
        while True:
            out = {symbol: self._averaged(meaning) for symbol, meaning in self._book.meanings.items()}
            for symbol, value in out.items():
                known = symbol.is_positive or symbol.is_negative
                if not known and (sign := sign_of(value)):
                    self._sign(symbol, sign)
                    break
            else:
                return out

    def _averaged(self, expr: Expr) -> Expr:
        rule: dict[Expr, Expr] = {}
        for node in over_sites(expr):
            body = node.args[0]
            if not body.has(SiteResponse) and all(isinstance(q.family, Quenched) for q in site_quantities(body)):
                continue  # an average of given numbers
            ensemble = self.sides[side_of(body)].ensemble()
            if isinstance(node, Average):
                rule[node] = ensemble.average(body)
                continue
            inner = ensemble.at_site(body)
            ((index, _, size),) = node.limits
            rule[node] = Sum(inner, (index, 1, size)) if inner.has(SiteQuantity) else size * inner
        return tidy_arguments(expr.xreplace(rule).xreplace(self.binding))

    def observable(self, key: Any) -> Expr:
        """Return an observable in terms of order parameters, global variables and parameters.

        Parameters
        ----------
        key : Expr or Family
            ``average(...)``, ``Sum(..., (i, 1, N))``, ``response(w)``, any expression of these.

        Raises
        ------
        DeclarationError
            If it is not made of single-site quantities of this system.
        """
        if isinstance(key, Family):
            raise DeclarationError(
                f"{key} is a family of variables, not a number.", f"average({key}[...]), response({key})"
            )
        expr = self._own(sympify(key))
        rule = {meaning: symbol for symbol, meaning in self._book.meanings.items()}
        expr = expr.xreplace(rule)
        free = site_quantities(_without_averages(expr))
        if free:
            raise DeclarationError(
                f"{free[0]} in {key} stands outside of an average: it differs from site to site.",
                "average(...), Sum(..., (i, 1, N)) or Sum(..., (mu, 1, P)), response(...)",
                f"average({key})",
            )
        return self._averaged(expr)

    def _own(self, expr: Expr) -> Expr:
        """The user's quenched parameters as this theory knows them: some may have been taken as positive."""
        known = {q.name: q for q in self.system.quenched}
        found = {q for q in expr.atoms(SiteQuantity) if isinstance(q.family, Quenched) and q.family.name in known}
        return expr.xreplace({q: known[q.family.name][q.indices] for q in found})

    @property
    def feature(self) -> SideView:
        """The theory of a feature site."""
        return SideView(self, self.sides[FEATURE])

    @property
    def datum(self) -> SideView:
        """The theory of a datum site."""
        return SideView(self, self.sides[DATUM])

    @property
    def order_parameters(self) -> dict[OrderParameter, Expr]:
        """Each order parameter and what it stands for."""
        return dict(self._book.meanings)

    @property
    def equations(self) -> list[Equation]:
        """The closed system."""
        return [Equation(s, v) for s, v in self.closures.items()] + self.global_equations + self.fixed_equations

    @property
    def unknowns(self) -> list[Symbol]:
        """Order parameters and global variables; one of the parameters more for each fixed condition."""
        return [*self._book.meanings, *self.system.globals]

    @cached_property
    def units(self) -> dict[Symbol, Expr]:
        """Each global variable by its value in units of the standard deviation of the field it shifts."""
        out = {}
        for g in self.system.globals:
            scale: Expr = S.One
            for side in self.sides.values():
                if any(e.difference.has(g) for e in side.law.equations):
                    eta = side.inner().eta
                    variance = side.covariance[eta, eta]
                    scale = S.One if variance.has(SiteQuantity) else sqrt(variance)
            out[g] = OrderParameter(f"{g.name}_hat") * scale
        return out

    @cached_property
    def scaled_unknowns(self) -> tuple[Symbol, ...]:
        """Order parameters, and the global variables in units of their fields: what is solved for."""
        hats = [next(s for s in v.atoms(OrderParameter) if s.name == f"{g.name}_hat") for g, v in self.units.items()]
        return (*self._book.meanings, *hats)

    def _independent(self) -> tuple[list[Equation], dict[Symbol, Symbol]]:
        """The closed system without the unknowns that equal others from the start, and those."""
        first: dict[Expr, OrderParameter] = {}
        same: dict[Symbol, Symbol] = {s: first[v] for s, v in self.closures.items() if first.setdefault(v, s) != s}
        return [e for e in self.equations if e.lhs not in same], same

    def _eliminate(self, last: tuple[Symbol, ...]) -> Closed:
        equations, same = self._independent()
        exprs = [e.difference.xreplace(self.units) for e in equations]
        return eliminate(exprs, self.scaled_unknowns, last, same)

    def remaining(self, closed: Closed) -> list[Equation]:
        """The equations of the closed system that elimination has left over, as they were."""
        equations, _ = self._independent()
        return [equations[k] for k in closed.origins]

    @cached_property
    def reduced(self) -> Closed:
        """The closed system after elimination of the order parameters."""
        return self._eliminate(())

    @cached_property
    def reduced_with_load(self) -> Closed:
        """The closed system after elimination of the order parameters and of the load alpha."""
        return self._eliminate((alpha,))

    def closed_form(self, symbol: Any) -> Expr:
        """Return an unknown as an explicit expression in the parameters.

        Parameters
        ----------
        symbol : Symbol or observable
            The load ``alpha`` (where a fixed condition determines it), an order parameter, a global, or any
            observable.

        Raises
        ------
        NoClosedForm
            If equations are left that only a root finder solves; they are in ``.remaining``.
        """
        target = sympify(symbol)
        with_load = bool(self.system.fixed)
        closed = self.reduced_with_load if with_load else self.reduced
        expr = target if target == alpha else self.observable(target).xreplace(self.units)
        for name in closed.definitions:
            if expr.has(name):
                expr = tidy_arguments(expr.xreplace({name: closed.explicit(name)}))
        open_ = expr.free_symbols & (set(self.scaled_unknowns) | ({alpha} if with_load else set()))
        if open_:
            left = tuple(Equation(e, S.Zero) for e in closed.core)
            raise NoClosedForm(
                f"{symbol} has no closed form: {', '.join(sorted(map(str, open_)))} "
                f"remain{'s' if len(open_) == 1 else ''}, fixed by {len(left)} "
                f"equation{'' if len(left) == 1 else 's'}.",
                left,
                "theory.solve({...}) solves them numerically to any number of digits",
            )
        return simplest(expr)

    # -- display ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        head = "Naive mean-field theory" if self.is_naive else "Cavity theory"
        lines = [f"{head}{' of ' + self.system.name if self.system.name else ''}"]
        lines += [f"  {s} = {m}" for s, m in self.order_parameters.items()]
        lines.append("  closed by")
        lines += [f"  {e}" for e in self.equations]
        return "\n".join(lines)

    __repr__ = __str__


def _without_averages(expr: Expr) -> Expr:
    return expr.xreplace(dict.fromkeys(over_sites(expr), S.One))


def over_sites(expr: Expr) -> set[Expr]:
    """The averages and the sums over sites; sums over components are none."""
    sums = {node for node in expr.atoms(Sum) if any(lim[2] in SIZE.values() for lim in node.limits)}
    return expr.atoms(Average) | sums


__all__ = ["SideView", "Theory", "over_sites", "side_of"]
