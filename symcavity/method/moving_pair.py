"""Two sites at once, of states that move: what two sites have in common over time, at given couplings.

In a stationary state covariances and mean responses depend on the lag, and what joins two sites is a product in
frequencies, ``G(w) = L(w) X(w) L(w)`` as at rest (:mod:`symcavity.method.pair`).  The product of two covariances at
two lags holds two such lines, each at a frequency of its own: squared and summed over all sites,

    T(w, v) = P(w, v) + P(w, v) W T(w, v),    P(w, v) = <L(w) L(v)> of each kind,    W = N <x x>.

For independent couplings of the variance ``g^2/N`` it is ``T = C(w) C(v)/|1 - g^2 S(w) S(v)|^2`` (Clark, Abbott and
Litwin-Kumar, Phys. Rev. Lett. 131, 118401, 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy import Add, Expr, I, S, Sum, Symbol, exp, oo, pi

from symcavity.algebra.flow import Element
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.average import message_response
from symcavity.method.close import kind_of_body
from symcavity.method.observed_sums import without_fields
from symcavity.method.pair import Pair, reached
from symcavity.method.pair_ends import Ends, Leg, Two
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.kinds import N, in_units_of_n
from symcavity.model.names import fresh_name
from symcavity.model.noise import Noise
from symcavity.model.quantities import Family, Quenched, SiteQuantity, site_quantities
from symcavity.model.times import Time, other_times
from symcavity.record.order_parameters import MovingParameter

EXAMPLE = "theory.pair(over=[t])"


def observed_state(system: Any, what: Any) -> Expr:
    """The quantity of one site that is asked for, at the time of the system, in its states.

    Raises
    ------
    DeclarationError
        If it is none.
    """
    body = what.at_site() if isinstance(what, Family) else what
    if not isinstance(body, Expr) or body.has(Average):
        raise DeclarationError(f"{what!r} is not a quantity of one site.", "x, x[i, t], tanh(x[i, t])")
    body = without_fields(system, system.own(system.rewritten.observable(Average(body)))).args[0]
    kind_of_body(body)
    if site_quantities(body, Noise, Quenched) or any(q.time != system.time for q in site_quantities(body)):
        raise DeclarationError(f"{what} is not a function of states at the time {system.time}.", "x, tanh(x[i, t])")
    defined = (q for q, update in system.motion.updates.items() if not update.lead and update.equation.rhs == body)
    return next(defined, body)  # a state of its own, where the system has it


@dataclass(frozen=True)
class MovingPair(Pair):
    """What two sites have in common over time, where couplings are given and the state is stationary.

    Attributes
    ----------
    reach : Ends
    """

    reach: Any

    @cached_property
    def _letters(self) -> tuple[str, str, str]:
        taken = {str(s) for s in (*self.theory.system.parameters, *self.theory.system.quenched)}
        taken |= {str(t) for t in (self.time, *other_times(self.time))}
        return fresh_name(taken, "omega"), fresh_name(taken, "nu"), fresh_name(taken, "tau")

    @property
    def time(self) -> Time:
        """The time of the system."""
        time: Time = self.theory.system.time
        return time

    @property
    def second(self) -> Time:
        """The earlier one of two times."""
        return other_times(self.time)[0]

    @property
    def frequencies(self) -> tuple[Symbol, Symbol]:
        """Of the two lines from one site to the other."""
        first, second, _ = (Symbol(name, real=True) for name in self._letters)
        return first, second

    @property
    def lag(self) -> Symbol:
        """By how much one of two times is later."""
        return Symbol(self._letters[2], real=True)

    @cached_property
    def names(self) -> dict[Two, str]:
        """The name of the transform of each covariance and each response of one site."""
        out: dict[Two, str] = {}
        taken: set[str] = set()
        for k, a in enumerate(self.legs):
            for b in self.legs[k:] if a.sent is not None else ():
                if a.kind == b.kind and b.sent is not None:
                    out[a, b] = fresh_name(taken, "_".join(["C", *dict.fromkeys((a.name, b.name))]))
            for b in self.legs if a.sent is not None else ():
                if b.field is not None and a.kind == b.kind and self._answer(a, b) != 0:
                    several = sum(c.field is not None and c.kind == a.kind for c in self.legs) > 1
                    out[a, b] = fresh_name(taken, f"S_{a.name}_{b.name}" if several else f"S_{a.name}")
        return out

    def _answer(self, a: Leg, b: Leg) -> Expr:
        """The mean response of what a site sends to a field that it hears, at an earlier time."""
        assert b.field is not None  # noqa: S101 - asked of fields only
        answer = message_response(self.theory.system, a.sent, b.field.declared, self.second)
        return b.field.factor * Average(answer) if answer != 0 else S.Zero

    def line(self, a: Leg, b: Leg, frequency: Expr) -> Expr:
        """The transform of the covariance, or of the response, of one site, at a frequency."""
        for two, where in (((a, b), frequency), ((b, a), -frequency)):
            if two in self.names:
                return MovingParameter(self.names[two], (where,))
        return S.Zero

    @property
    def transforms(self) -> list[Equation]:
        """What the transforms of one site are that the equations hold: sums, or integrals, over the lag."""
        t, s, first = self.time, self.second, self.frequencies[0]
        used = {e.base for c in self.equations for e in c.rhs.atoms(MovingParameter)}
        out = []
        for (a, b), name in self.names.items():
            if name in used:
                both = None if b.sent is None else Average(a.sent * b.sent.xreplace({t: s}))
                wave = exp(-I * first * (t - s)) * (self._answer(a, b) if both is None else both)
                limits = (s, -oo, t if both is None else oo)
                total = Sum(wave * Element(s) if self.theory.system.flowing else wave, limits)
                out.append(Equation(MovingParameter(name, (first,)), total))
        return out

    @cached_property
    def twos(self) -> tuple[Two, ...]:
        """Pairs of ends of one site: the first belongs to the line at the first frequency."""
        return tuple((a, b) for a in self.legs for b in self.legs if a.kind == b.kind)

    def at_sites(self, row: Two, column: Two) -> Expr:
        """An entry of ``P``: of a kind's sites, in units of N."""
        first, second = (self.line(a, b, w) for a, b, w in zip(row, column, self.frequencies, strict=True))
        return in_units_of_n(row[0].kind.size / N) * first * second

    @cached_property
    def system(self) -> tuple[tuple[Two, ...], list[Expr], list[list[Expr]]]:
        """The pairs that count, the column ``P`` of the target, and the matrix ``P W``."""
        rows, target = self.twos, self.target
        column = [self.at_sites(row, target) for row in rows]
        steps = {(a, b): self.at_sites(a, b) for a in rows for b in rows if a[0].kind == b[0].kind}
        edges = {(b, c): self.between(b, c) for b in rows for c in rows}
        matrix = [[Add(*(steps[a, b] * edges[b, c] for b in rows if (a, b) in steps)) for c in rows] for a in rows]
        return reached(rows, column, matrix, rows.index(target))

    @cached_property
    def symbols(self) -> dict[Two, Any]:
        """A symbol for each function ``T``."""
        out: dict[Two, Any] = {}
        taken = set(self.names.values())
        for two in self.system[0]:
            letters = "".join("C" if leg.sent is not None else "R" for leg in two)
            name = fresh_name(taken, f"{letters}_{'_'.join(dict.fromkeys(leg.name for leg in two))}")
            out[two] = MovingParameter(name, self.frequencies)
        return out

    def dimension(self, symbol: MovingParameter) -> Equation:
        """What the dimension after a lag is: the square of the variance over the sum of all squared covariances."""
        first, second = self.frequencies
        around = (lambda w: (w, -oo, oo)) if self.theory.system.flowing else (lambda w: (w, -pi, pi))
        leg = self.target[0]
        here = Sum(exp(I * self.lag * first) * self.line(leg, leg, first) * Element(first), around(first))
        wave = exp(I * self.lag * (first + second)) * self.symbols[self.target] * Element(first) * Element(second)
        share = in_units_of_n(self.kind.size / N)
        return Equation(symbol, share * here**2 / Sum(wave, around(first), around(second)))


def moving_pair_of(theory: Theory, observed: Any, over: Any) -> MovingPair:
    """Insert two sites whose states move, over time.

    Raises
    ------
    DeclarationError
        For anything else than the time of the theory, and what is not a quantity of one kind of site.
    UnsupportedLaw
        For the naive analysis, sites that differ by quenched parameters or stand beside such that keep still, vector
        fields, and couplings whose variance differs from site to site.
    """
    system = theory.system
    given = list(over) if isinstance(over, Sequence) and not isinstance(over, str) else [over]
    if given != [system.time]:
        raise DeclarationError(
            f"over={over!r:.80}, and the states of this theory move over {system.time}.",
            f"the time alone: noise and quantities that are drawn anew vary with it, [{system.time}]",
            EXAMPLE,
        )
    return MovingPair(theory, Ends((system.time,), *_legs(theory, observed_state(system, observed))))


def _legs(theory: Theory, observed: Expr) -> tuple[Expr, tuple[Leg, ...]]:
    system = theory.system
    if theory.is_naive:
        raise _refused("the naive analysis, whose responses are not those of instances")
    for f in system.fields:
        if f.components or f.inner:
            raise _refused(f"the vector field {f.as_sum}")
        if f.time is None or not f.states():
            raise _refused(f"{f.as_sum}, a field that keeps still")
        if f.coupling.family.variance.has(SiteQuantity):
            raise _refused(f"{f.coupling.family}, whose variance differs from site to site")
    legs: list[Leg] = []
    for kind, site in theory.inserted.items():
        for q in (q for e in site.law.equations for q in site_quantities(e.difference, Quenched)):
            if q.time is None:
                raise UnsupportedLaw(
                    f"The sites differ by {q}: one mean response does not hold for all of them.", "sites of one law"
                )
        sent = [f.emission for f in system.fields if f.sender == kind]
        sent += [observed] if kind == kind_of_body(observed) else []
        legs += [Leg(kind, sent=e) for e in dict.fromkeys(sent)]
        legs += [Leg(kind, field=h) for h in site.heard]
    return observed, tuple(legs)


def _refused(found: str) -> UnsupportedLaw:
    return UnsupportedLaw(
        f"The covariances of sites over time are not derived for {found}.",
        "scalar fields of states that all move, with one variance for a coupling, and sites of one law",
        "sim.dimension(..., over=[t]) of instances",
    )
