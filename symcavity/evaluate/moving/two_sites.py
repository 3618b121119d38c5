"""Covariances of two sites over time at given couplings: how many directions a stationary activity explores.

As at rest (:mod:`symcavity.method.pair`), two sites hear each other directly and through all others, now at each
frequency with the mean responses that they have there.  The mean square of a covariance after a lag holds two lines
from site to site, each at a frequency of its own: with the spectra C and responses S of what is sent,

    sum over j of C_ij(lag)^2 = sum over two frequencies of exp(i (w + v) lag) T(w, v),    T = P + P W T,

where ``P = L(w) L(v)`` of one site (C, S and its conjugate), and ``W`` is N times the covariance of two couplings.  For
independent couplings of the variance ``g^2/N`` it is ``T = C(w) C(v)/|1 - g^2 S(w) S(v)|^2`` (Clark, Abbott and
Litwin-Kumar, Phys. Rev. Lett. 131, 118401, 2023): at one frequency it would be the formula of states at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.evaluate.moving.plan import Plan
from symcavity.method.close import kind_of_body
from symcavity.method.heard import without_fields
from symcavity.method.pair import Leg, Pair
from symcavity.model.averages import Average
from symcavity.model.kinds import N
from symcavity.model.noise import Noise
from symcavity.model.quantities import Family, Quenched, site_quantities

Spectrum = Callable[[Expr, Expr], np.ndarray]


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
        raise DeclarationError(f"{what} is no function of states at the time {system.time}.", "x, tanh(x[i, t])")
    return body


class TwoSites:
    """The lines that join sites, as a linear system for each two frequencies.

    Parameters
    ----------
    theory : Theory
    plan : Plan
    observed : Expr
        A function of the states of one site.

    Raises
    ------
    UnsupportedLaw
        For sites that differ by quenched parameters, and fields with components or of several kinds that keep still.
    """

    def __init__(self, theory: Any, plan: Plan, observed: Expr) -> None:
        self.plan, self.observed = plan, observed
        self.legs: list[Leg] = []
        for kind, site in theory.inserted.items():
            for q in (q for e in site.law.equations for q in site_quantities(e.difference, Quenched)):
                raise UnsupportedLaw(f"The sites differ by {q}: no mean response does for all.", "sites of one law")
            sent = [f.emission for f in theory.system.fields if f.sender == kind]
            sent += [observed] if kind == kind_of_body(observed) else []
            self.legs += [Leg(kind, sent=e) for e in dict.fromkeys(sent)]
            self.legs += [Leg(kind, field=h) for h in site.heard]
        pair = Pair(theory, (), observed, tuple(self.legs))
        self.rows = [(a, b) for a in self.legs for b in self.legs if a.kind == b.kind]
        self.target = self.rows.index(pair.target)
        put = plan.values.put_into
        self.share = np.array([float(put((a.kind.size / N).subs(a.kind.size, a.kind.ratio * N))) for a, _ in self.rows])
        self.between = np.array([[float(put(pair.between(r, c))) for c in self.rows] for r in self.rows])

    def dimension(self, spectrum: Spectrum, answer: Any, waves: np.ndarray, own: float) -> float:
        """``(sum C_ii)^2/(n sum C_ij^2)`` of n sites after a lag, in the limit.

        Parameters
        ----------
        spectrum : callable
            The spectrum of what is sent: at each frequency the sum over lags of ``exp(-i w lag) <a(t + lag) b(t)>``.
        answer : callable
            The same of the mean response of what is sent to a field.
        waves : ndarray
            ``exp(i w lag)`` at the lag, times the weight of each frequency in the sum over frequencies.
        own : float
            The covariance of a site with itself after the lag.
        """
        ends = [(a, b) for a in self.legs for b in self.legs if a.kind == b.kind]
        every = [(pair, self._line(*pair, spectrum, answer)) for pair in ends]
        lines = {pair: line for pair, line in every if line is not None}
        size, total = len(self.rows), 0.0
        for w, wave in enumerate(waves):
            one = np.zeros((len(waves), size, size), dtype=complex)
            for r, (a, b) in enumerate(self.rows):
                for c, (p, q) in enumerate(self.rows):
                    if (a, p) in lines and (b, q) in lines:
                        one[:, r, c] = self.share[r] * lines[a, p][w] * lines[b, q]
            first = one[:, :, self.target, None]
            found = np.linalg.solve(np.eye(size) - one @ self.between, first) - first
            total += float((found[:, self.target, 0] * waves * wave).sum().real)
        return own**2 / (own**2 + total / self.share[self.target])

    @staticmethod
    def _line(a: Leg, b: Leg, spectrum: Spectrum, answer: Any) -> np.ndarray | None:
        if a.sent is not None and b.sent is not None:
            return spectrum(a.sent, b.sent)
        if a.sent is not None:
            return answer(a.sent, b.field)
        return None if b.sent is None else answer(b.sent, a.field).conj()


def check_balanced(sizes: Mapping[Expr, tuple[float, float]]) -> None:
    """Refuse what is sent with a part that stays: its share of the mean square, and the error of this share.

    Raises
    ------
    UnsupportedLaw
        If there is one.
    """
    for sent, (part, error) in sizes.items():
        if abs(part) > max(4 * error, 1e-6):
            raise UnsupportedLaw(
                f"At given couplings {sent} has a part that stays, {part:.3g} of its mean square, which differs from "
                "site to site, so that one mean response does not do for all of them.",
                "states whose correlations die out, with means that vanish",
                "a longer until=, if they have not died out yet",
            )
