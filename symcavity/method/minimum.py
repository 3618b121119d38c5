"""The minimum of a convex problem per feature as a function of the order parameters, stationary where these are closed.

A site of each kind minimizes its own cost at its cavity fields, with its self-couplings as curvature; ``M_k`` is that
minimum.  What goes from a site to its neighbors and comes back stands in the minima of both, so that the function

    E = sum over kinds of N_k/N <M_k> + sum over pairs of fields of
        [(overlap of messages)(response of emissions) + (overlap of emissions)(response of messages)]/2

adds it once; for one coupling ``E = alpha <M_d> + <M_f> + alpha (q_lambda S_w + q_w S_lambda)/2``.  By the envelope
theorem the slope of a minimum in a self-coupling is minus half a squared emission, and its curvature in a field minus a
response: the slope of E in an order parameter is a factor times the difference of another one and the average that it
stands for.  A field of given emissions, such as a teacher's, has no response, and its overlap with a trained one counts
once, not in halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Any

from sympy import Add, Expr, S, Sum, Symbol, expand_mul

from symcavity.algebra.joint import JointAverage
from symcavity.errors import UnsupportedLaw
from symcavity.method.average import ParameterBook
from symcavity.method.fluctuations import minimum_of
from symcavity.method.lagrangian import slopes_in_shared
from symcavity.method.naming import at_zero
from symcavity.method.objective_fields import matching
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.fields import FieldSymbol
from symcavity.model.kinds import DATUM, FEATURE, Kind, N, in_units_of_n, to_leading_order
from symcavity.model.objective import objective_of
from symcavity.model.quantities import Field, Global, SiteQuantity
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import Slope
from symcavity.sites.site import Site

WHOLE, OF_SITE = ("E", "Phi", "A"), ("M", "B", "D", "Y", "Z")  # what the minima may be called: as nothing else is


@dataclass(frozen=True)
class Minimum:
    """The minimum of a problem per feature, as a function of order parameters and global variables.

    Attributes
    ----------
    theory : Theory
    sites : dict
        The minimum of a site of each kind, in its states and the sums that it hears; without those that are zero.
    loops : Expr
        The products of an overlap and a response, in order parameters.
    shared : Expr
        What belongs to no site.
    """

    theory: Theory
    sites: dict[Kind, Expr]
    loops: Expr
    shared: Expr

    @cached_property
    def observable(self) -> Expr:
        """The function, with averages of the single-site minima."""
        return self.of({kind: Average(m) for kind, m in self.sites.items()})

    def of(self, averages: dict[Kind, Expr]) -> Expr:
        """The function, of given averages of the single-site minima."""
        return Add(*(kind.ratio * mean for kind, mean in averages.items())) + self.loops + self.shared

    def slope(self, symbol: Symbol) -> Expr:
        """The derivative of the function in an order parameter or a global variable."""
        if isinstance(symbol, Global):
            return self._shared_slopes[symbol]
        slope = self.loops.diff(symbol)
        return slope - slope.xreplace(self.theory.order_parameters)

    @property
    def varied(self) -> list[Symbol]:
        """The order parameters and global variables in which the function is stationary."""
        return [*self.theory.order_parameters, *(g for g in self.theory.system.globals if g in self._shared_slopes)]

    @cached_property
    def _shared_slopes(self) -> dict[Global, Expr]:
        """The slope of the Lagrangian over N in each global variable."""
        return {
            variable: Add(*(k.ratio * _averaged(self.theory, body) for k, body in parts.items())).expand(deep=False)
            for variable, parts in slopes_in_shared(self.theory.system).items()
        }


def minimum(theory: Theory) -> Minimum:
    """Return the minimum per feature as a function of the order parameters.

    Raises
    ------
    UnsupportedLaw
        For systems of equations, the naive analysis, states that move, vector fields, and sites that hear several
        trained fields through one law (matrices), of which no formula is known to be that function.
    """
    _refuse(theory)
    sites = {kind: own for kind, site in theory.inserted.items() if (own := minimum_of(theory, site)) != 0}
    book = ParameterBook(meanings=dict(theory.order_parameters))
    loops: list[Expr] = []
    for kind, site in theory.inserted.items():
        for factor, body in _loops(theory, site):
            loops += [in_units_of_n(book.close(Sum(part * body / N, kind.range))) for part in factor]
    if {*book.meanings} != {*theory.order_parameters}:
        raise _unsupported("statistics of single sites that are not order parameters")
    shared = to_leading_order(in_units_of_n(theory.system.record.shared / N).expand())
    return Minimum(theory, sites, Add(*loops), shared)


def _refuse(theory: Theory) -> None:
    system = theory.system
    if system.record is None:
        raise _unsupported("a system of equations, which minimizes nothing")
    if theory.is_naive or system.time is not None:
        raise _unsupported("the naive analysis" if theory.is_naive else "states that move")
    for f in system.record.fields:
        if f.components or f.inner:
            raise _unsupported(f"the vector field {f.as_sum}")
        if f.hearer == f.sender or f.coupling.family.reciprocity != 0:
            raise _unsupported(f"{f.coupling.family}, which couples a kind of site with itself")
    if any(value.has(JointAverage) for value in theory.closures.values()):
        raise _unsupported("sites that hear several trained fields through one law")


def _unsupported(found: str) -> UnsupportedLaw:
    return UnsupportedLaw(
        f"The minimum as a function of the order parameters is not derived for {found}.",
        "convex problems whose sites hear scalar fields",
        "solution.objective, its value",
    )


def _loops(theory: Theory, site: Site) -> Iterator[tuple[tuple[Expr, ...], Expr]]:
    """What a site's own emissions cost through its fields: terms of a self-coupling, and a product of emissions."""
    record, own = theory.system.record, theory.system.own
    for f in record.fields:
        message = record.messages[f.symbol]
        ways = [(f.sender, f.emission, message)] if f.hearer == site.kind else []
        ways += [(f.hearer, message, f.emission)] if f.sender == site.kind else []
        for sender, heard, sent in ways if message != 0 else ():
            field, ratio = matching(site, f, sender, own(heard))
            for k in field.feedback:
                count = 2 if k.through.states() else 1  # the overlap with a given emission stands once
                yield Add.make_args(expand_mul(ratio * site.means[k.symbol] / count)), own(sent) * k.emission


def _averaged(theory: Theory, body: Expr) -> Expr:
    """What a condition sums over a kind of site, averaged, to leading order."""
    rule = {f.symbol: f.as_sum for f in theory.system.fields}
    fixed, moving = to_leading_order(body).as_independent(SiteQuantity, FieldSymbol, as_Add=True)
    factor, rest = moving.as_independent(SiteQuantity, FieldSymbol, as_Add=False)
    return fixed + (factor * Average(rest.xreplace(rule)) if moving != 0 else S.Zero)


# -- the record ------------------------------------------------------------------------------------


def minimum_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """The function, its slopes, and its value where they vanish; nothing where it is not derived."""
    try:
        found = minimum(theory)
    except UnsupportedLaw:
        return []
    make = make.within("The minimum")
    whole, letters = names_of_minima(theory)
    own = {kind: Field(letters[kind], index=kind.index).at_site() for kind in found.sites}
    function = Equation(whole, found.of({kind: Average(m) for kind, m in own.items()}))
    minima = [
        Equation(at_zero(own[kind], kind), at_zero(in_fields(theory.inserted[kind], m), kind))
        for kind, m in found.sites.items()
    ]
    varied = [g for g in found.varied if isinstance(g, Global)]
    evidence = {"minimum": found, "kinds": tuple(found.sites)}
    return [
        make(
            "minimum",
            "minimum",
            [*minima, function],
            data={"kinds": [*found.sites], "loops": bool(found.loops != 0)},
            rests_on=tuple(f"{kind.key}.{part}" for kind in found.sites for part in ("effective_law", "solution")),
            evidence=evidence,
        ),
        make(
            "minimum.slopes",
            "minimum_slopes",
            [Equation(Slope(whole, symbol), found.slope(symbol)) for symbol in found.varied],
            data={"function": whole, "globals": varied, "bounded": [g for g in varied if g.is_bounded]},
            rests_on=("minimum", "closed_system"),
            evidence=evidence,
        ),
        make(
            "minimum.value",
            "minimum_value",
            [Equation(whole, objective_of(theory.system))],
            data={"function": whole},
            rests_on=("minimum", "closed_system"),
            evidence=evidence,
        ),
    ]


def in_fields(site: Site, expr: Expr) -> Expr:
    """The minimum of a site with the names of its local fields, or with cavity fields and self-couplings."""
    fields = [e for e in site.law.equations if isinstance(e.lhs, SiteQuantity) and isinstance(e.lhs.family, Field)]
    named = {e.rhs: e.lhs for e in fields}
    rule: dict[Any, Expr] = {}
    for h in site.heard:
        effective = h.effective().xreplace(dict(site.means))
        rule[h.declared.as_sum] = named.get(h.declared.symbol, effective)
    return expr.xreplace(rule)


def names_of_minima(theory: Theory) -> tuple[OrderParameter, dict[Kind, str]]:
    """Letters for the minima that nothing else of the system begins with; features and data share one."""
    system = theory.system
    every = [*system.variables, *system.globals, *system.parameters, *theory.order_parameters, *system.named]
    every += families([e.difference for e in system.declared], SiteQuantity)
    names = {getattr(q, "name", str(q)) for q in every} | {f.coupling.family.name for f in system.fields}
    names |= {q.name for q in system.quenched} | {kind.size.name for kind in (*system.kinds, N.kind)}
    taken = {name.partition("_")[0] for name in names}
    more = (f"{OF_SITE[0]}{k}" for k in count(1))
    letters = (name for name in chain(OF_SITE, more) if name not in taken)
    first = next(letters)
    of_site = {kind: first if kind in (FEATURE, DATUM) else next(letters) for kind in theory.inserted}
    every_name = chain(WHOLE, (f"{WHOLE[0]}{k}" for k in count(1)))
    return OrderParameter(next(name for name in every_name if name not in taken)), of_site
