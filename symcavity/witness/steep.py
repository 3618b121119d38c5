"""Witness of squared responses whose average is infinite: a state that jumps, seen at ever closer fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Expr, Rational, S

from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Verdict
from symcavity.witness.drawn import cases, given_averages, seeded_point
from symcavity.witness.lowest import SearchedSite
from symcavity.witness.on_grids import heard_by, heard_through, states_at
from symcavity.witness.registry import result

FIELDS, FAR = 241, 6.0  # places of the field, and how far out, in its standard deviations
HALVINGS = 12  # in the narrowest window, and so many more in a wider one that fields come as close
SPANS = 1, 8, 64  # windows of fields: parameters of a site may move its jump far out
JUMP = 1e-3  # of what a state moves by between far fields, where its largest jump is looked for
ELSEWHERE = Rational(3, 8)  # where the other fields keep still


def steep(theory: Any, square: Expr) -> list[Verdict]:
    """That the average of a squared slope is infinite: the state jumps between two fields, however close they are."""
    response = min(square.atoms(SiteResponse), key=str)
    (kind,) = response.state.site
    if theory.inserted[kind].law.weight is None:
        state, fields = _by_branches(theory, theory.inserted[kind], response)
        how = "the branch that holds at ever closer fields"
    else:
        site = SearchedSite(theory, kind)
        state, fields = (lambda at: np.array([site.lowest(float(v))[0] for v in at])), site.fields()
        how = "a search for the lowest state at ever closer fields"
    ok = any(_jumps(state, far * fields, HALVINGS + int(np.log2(far))) for far in SPANS)
    return result(BRUTE_FORCE, ok, how, "no jump is found")


def _jumps(state: Callable[[np.ndarray], np.ndarray], fields: np.ndarray, halvings: int) -> bool:
    """Whether a state jumps at one of some fields, where it moves most: at ever closer fields about that one."""
    found = state(fields)
    k = int(np.argmax(np.abs(np.diff(found))))
    (low, high), ends = fields[k : k + 2], [*found[k : k + 2]]
    for _ in range(halvings):
        middle = (low + high) / 2
        (here,) = state(np.array([middle]))
        if abs(here - ends[0]) < abs(here - ends[1]):
            low, ends[0] = middle, here
        else:
            high, ends[1] = middle, here
    return bool(abs(ends[1] - ends[0]) > JUMP * np.ptp(found))


def _by_branches(
    theory: Any, side: Any, response: SiteResponse
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """A state at values of the field that a response is to, at seeded numbers, and these values."""
    solution, order = heard_by(side, response)
    eta = heard_through(side, response).eta
    values, laws = seeded_point(theory, S.Zero, side, 0)
    exprs = [*side.covariance.values(), *(e for b in solution.branches for e in (*b.values.values(), *b.conditions))]
    quenched = sorted({q for e in exprs for q in site_quantities(e, Quenched)}, key=str)
    (case, _), *_ = cases(quenched, laws)

    def plain(expr: Expr) -> Expr:
        return given_averages(expr, laws).xreplace({**values, **case})

    row, quiet = order.index(eta), dict.fromkeys(side.problem.plain_sources().values(), S.Zero)

    def state(at: np.ndarray) -> np.ndarray:
        fields = np.full((len(order), len(at)), float(ELSEWHERE))
        fields[row] = at
        return states_at(solution, plain, order, quiet, response.state, fields)

    width = float(plain(side.covariance[eta, eta])) ** 0.5
    return state, np.linspace(-FAR, FAR, FIELDS) * width * 1.0123 + 0.00137 * width
