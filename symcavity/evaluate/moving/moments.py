"""Averages of polynomials of the second degree in states that are sums of Gaussian fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sympy import Add, Expr, Poly, PolynomialError, S

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.evaluate.moving.shares import Monomial, Share
from symcavity.model.kinds import Kind
from symcavity.model.noise import drawn_anew
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.times import Time, lag_of


def average(run: Any, kind: Kind, body: Expr, times: Sequence[Time], steps: np.ndarray) -> np.ndarray:
    """The average of a polynomial of at most the second degree in states, on one axis for each time.

    Raises
    ------
    UnsupportedLaw
        If it is anything else.
    """
    states = site_quantities(body, Variable, Field)
    try:
        poly = Poly(body, *states) if states else None
    except PolynomialError:
        raise _beyond(body) from None
    terms = [((), body)] if poly is None else poly.terms()
    if drawn_anew(body) or any(sum(powers) > 2 or c.has(*states, *times) for powers, c in terms):
        raise _beyond(body)
    out = run.zeros(tuple(len(steps) for _ in times))
    with run.precise():
        for powers, coefficient in terms:
            chosen = [q for q, n in zip(states, powers, strict=True) for _ in range(n)]
            one, two = [*chosen, None, None][:2]
            for share in run.shares[kind]:
                found = _products(run, one, two, coefficient.xreplace(share.known), share, steps)
                out = out + share.weight * on_axes(found, [open_time(one), open_time(two)], times)
    return out


def _products(run: Any, one: Any, two: Any, weight: Expr, share: Share, steps: np.ndarray) -> np.ndarray:
    """The average of a weight times two states, or one, or none, at the values of their times."""
    (first, a), (second, b) = (_rows(run, q, share, steps) for q in (one, two))
    n, cov = len(share.factors), share.scaled
    assert cov is not None  # noqa: S101 - made before the first step
    out = run.zeros((len(a), len(b)))
    for term in Add.make_args(weight.expand()):
        number, monomial = term.as_independent(SiteQuantity, as_Add=False)
        value = run.number(number)
        if first is not None and second is not None and n:
            if monomial != 1 and any(q.site == one.site for q in run.masked):
                raise UnsupportedLaw(
                    f"The contribution of masks to {one} depends on its weight {monomial}.",
                    "averages of products of two states",
                    'evolve(..., method="paths")',
                )
            out = out + value * run.moments.of(monomial) * (first[:, :n] @ cov[:n, :n] @ second[:, :n].T)
        for j, k in np.ndindex(*out.shape):
            out[j, k] = out[j, k] + value * run.moments.mean(a[j], b[k], monomial)
    return out


def _rows(run: Any, q: Any, share: Share, steps: np.ndarray) -> tuple[Any, list[dict[Monomial, Any]]]:
    """The slopes and constants of a state at the values of its time; of nothing, one."""
    if q is None:
        return None, [{S.One: run.one}]
    when = [0] if q.time is None else [lag_of(q.time) + int(k) for k in (steps if q.time.free_symbols else [0])]
    here = [run.place(q, k) for k in when]
    if min(here) < 0 or max(here) >= len(share.constants[q.now]):
        raise DeclarationError(f"{q} lies outside of the steps of this run.", "times of the run, x[i, t] and x[i, s]")
    return share.slopes[q.now][here], [share.constants[q.now][k] for k in here]


def open_time(q: Any) -> Time | None:
    """The open time of a state; None where it has none."""
    return None if q is None or q.time is None else next((t for t in q.time.free_symbols if isinstance(t, Time)), None)


def on_axes(found: np.ndarray, own: Sequence[Time | None], times: Sequence[Time]) -> np.ndarray:
    """Products of two quantities, by the times of each, on the axes of all open times."""
    first, second = own
    if first is not None and first == second:
        found, own = np.diagonal(found), [first]
    else:
        found = found.reshape([n for n, t in zip(found.shape, own, strict=True) if t is not None])
        own = [t for t in own if t is not None]
    if len(own) == 2 and [t for t in times if t in own] != list(own):
        found, own = found.T, own[::-1]
    return found.reshape([found.shape[own.index(t)] if t in own else 1 for t in times])


def _beyond(body: Expr) -> UnsupportedLaw:
    return UnsupportedLaw(
        f"The exact run knows second moments, and no average of {body}.",
        "polynomials of at most the second degree in the states",
        "evolve(..., method=\"paths\")",
    )
