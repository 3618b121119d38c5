"""The linear equivalent: a system with the same couplings whose sites answer with their mean responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Add, Eq, Expr, Rational, Sum, Symbol, cancel, sqrt

from symcavity.errors import UnsupportedLaw
from symcavity.method.average import message_response
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, Variable, site_quantities
from symcavity.sites.protocol import Heard

HALF = Rational(1, 2)


@dataclass(frozen=True)
class LinearEquivalent:
    """A linear system with the couplings of another one: of the same overlaps, responses and covariances of sites.

    Attributes
    ----------
    equations : tuple of Eq
        Of what each kind of site sends, over its slope: the full field and independent noise.
    slopes, noises : dict
        The parameters of these equations, in averages of the theory: where what a site sends comes back to it, the
        slope at the full field is not the response to the cavity field, ``k = S/(1 + S F)``.
    """

    equations: tuple[Eq, ...]
    slopes: Mapping[Symbol, Expr]
    noises: Mapping[Symbol, Expr]
    laws: Mapping[Quenched, Any]
    shared: tuple[Symbol, ...]

    def at(self, solution: Any) -> dict[Any, Any]:
        """The values at which this system is equivalent to the one that was solved.

        Parameters
        ----------
        solution : Solution
            Of the theory.
        """
        numbers = {symbol: solution[value] for symbol, value in {**self.slopes, **self.noises}.items()}
        return {**numbers, **{s: solution[s] for s in self.shared}, **self.laws}


def linear_equivalent(theory: Theory) -> LinearEquivalent:
    """Put the mean response and an independent noise in the place of each law.

    Raises
    ------
    UnsupportedLaw
        For the naive analysis, states that move, vector fields, and kinds of sites that hear several fields or send
        several quantities.
    """
    system = theory.system
    equations: list[Eq] = []
    slopes: dict[Symbol, Expr] = {}
    noises: dict[Symbol, Expr] = {}
    laws: dict[Quenched, Any] = {}
    sent = {kind: _sent(theory, kind) for kind in theory.inserted}
    own = {kind: _variable(kind, e) for kind, e in sent.items()}
    for kind, site in theory.inserted.items():
        h = _heard(theory, kind)
        variable, f = own[kind], h.declared
        answer = h.factor * theory.observable(Average(message_response(system, sent[kind], f)))
        back = Add(*(site.means[k.symbol] * cancel(k.emission / sent[kind]) for k in h.feedback))
        size = theory.observable(Average(sent[kind] ** 2))
        slope = cancel(answer / (1 + answer * back))
        noise = size - answer**2 * site.covariance[h.eta, h.eta]
        if site.strategy.is_linear:  # exactly none, where the fields are all there is
            known = theory.closures
            noise = cancel(size.xreplace(known) - answer.xreplace(known) ** 2 * site.covariance[h.eta, h.eta])
        noise = cancel(noise / answer**2)  # added to the field
        k, d = Symbol(f"k_{variable.name}", real=True), Symbol(f"D_{variable.name}", positive=True)
        n = Quenched(f"n_{variable.name}", kind.index)
        share = cancel(f.emission / sent[f.sender])
        field = share * Sum(f.coupling * own[f.sender].at_site().xreplace({f.sender.index: f.sender_index}), *f.limits)
        slopes[k] = slope
        if noise != 0:
            noises[d], laws[n] = noise, {1: HALF, -1: HALF}
        equations.append(Eq(variable.at_site() / k, field + (sqrt(d) * n.at_site() if noise != 0 else 0)))
    needed = {s for e in equations for s in e.free_symbols if type(s) is Symbol}
    needed |= {s for f in system.fields for m in f.coupling.family.moments for s in m.free_symbols}
    ratios = {kind.ratio for kind in theory.inserted if kind.ratio.is_Symbol}
    shared = [s for s in (*system.parameters, *sorted(ratios, key=str)) if s in needed or s in ratios]
    return LinearEquivalent(tuple(equations), slopes, noises, laws, tuple(shared))


def _sent(theory: Theory, kind: Kind) -> Expr:
    """What the sites of a kind send, to all that hear them."""
    found = [f.emission for f in theory.system.fields if f.sender == kind and f.states()]
    first = found[0] if found else None
    if first is None or any(site_quantities(cancel(e / first)) for e in found):
        raise _refused(f"{kind.sites}, which send {len(dict.fromkeys(found))} quantities")
    return first


def _heard(theory: Theory, kind: Kind) -> Heard:
    fields = theory.inserted[kind].heard
    given = [q for q in theory.inserted[kind].law.quenched() if q.given is not None]
    if theory.is_naive or theory.system.time is not None or given:
        raise _refused("the naive analysis" if theory.is_naive else "states that move, and labels of fields")
    if len(fields) != 1 or fields[0].declared.components or fields[0].declared.inner:
        raise _refused(f"{kind.sites}, which hear {len(fields)} fields, or vectors")
    found: Heard = fields[0]
    if theory.inserted[kind].covariance[found.eta, found.eta].has(SiteQuantity):
        raise _refused(f"{kind.sites}, whose fields differ from site to site")
    return found


def _variable(kind: Kind, sent: Expr) -> Variable:
    (q, *others) = site_quantities(sent)
    if sent == q and not others:
        return q.family
    return Variable(f"e_{q.family.name}", kind.index)


def _refused(found: str) -> UnsupportedLaw:
    return UnsupportedLaw(
        f"The linear equivalent is not derived for {found}.",
        "cavity theories at rest whose sites hear one scalar field of states, and send one quantity",
        "theory.pair(over=[...]), which takes several fields, and variances that are products over both ends",
    )
