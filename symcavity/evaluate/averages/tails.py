"""Laws with heavy tails, or with weight where what is averaged grows without bound: which averages are finite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Pow, Sum

from symcavity.errors import ValuesError
from symcavity.evaluate.averages.densities import Counting, density_of, location
from symcavity.evaluate.averages.integrals import Pass
from symcavity.evaluate.averages.nodes import own_quantities
from symcavity.evaluate.undefined import where_defined
from symcavity.model.averages import Average

PLACES = (1e3, 1e5)  # widths of a law from its center, between which its tails are measured
LIGHT = 30.0  # moments from which on a tail is none
NEARLY = 0.15  # moments too few for what is averaged: its tail could not be summed in double
GROWN = 1e3  # by how much what grows has grown far out
TOWARDS = (1e-2, 1e-3, 1e-4, 1e-30, 1e-31)  # widths from zero: in the first steps there is no rounding, in the last all
STEADY = 0.05  # by which a power may differ from step to step
LEAST = 0.9  # moments without which nothing can be


@lru_cache(maxsize=256)
def tails(variable: Any) -> tuple[float, float]:
    """Return how many moments a law has on its left and right: its density falls like ``|x|**(-1 - number)``."""
    pdf = density_of(variable)
    low, high = (float(end) for end in (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup))
    centre, width = location(variable)
    found = []
    for way in (-1, 1):
        here = centre + way * width * np.array(PLACES)
        with np.errstate(all="ignore"):
            values = np.array([float(pdf(v)) if low < v < high else 0.0 for v in here])
        slope = np.log(values[1] / values[0]) / np.log(here[1] / here[0]) if np.all(values > 0) else -np.inf
        found.append(float(-slope - 1))
    return found[0], found[1]


def check_tails(exprs: Mapping[str, Expr], laws: Mapping[Any, Any], env: Mapping[Any, Any]) -> None:
    """Refuse averages that are infinite, because what is averaged grows too quickly for the tails of a law, or at zero.

    Parameters
    ----------
    exprs : mapping
        What holds averages over quenched parameters, by what it is the value of.
    laws : mapping
        The joint law of the quenched parameters of each kind of site.
    env : mapping
        Numbers for all symbols; how an average grows does not depend on them.

    Raises
    ------
    ValuesError
    """
    _check_poles(exprs, laws, env)
    heavy = {q: tails(v) for law in laws.values() for q, v in law.continuous if not isinstance(v, Counting)}
    heavy = {q: ends for q, ends in heavy.items() if min(ends) < LIGHT}
    if not heavy:
        return
    variables = {q: v for law in laws.values() for q, v in law.continuous}
    for q, ends in heavy.items():
        if min(ends) < LEAST:
            raise ValuesError(
                f"The law of {q.name} has tails that fall like |{q.name}|**-{1 + min(ends):.3g}: averages over them "
                "have no digits in double.",
                f"tails that fall at least like |{q.name}|**-2, those of the Cauchy law",
            )
    for name, expr in exprs.items():
        for q, x, whole in _integrands(expr):
            if q.family not in heavy:
                continue
            centre, width = location(variables[q.family])
            for way, moments in zip((-1, 1), heavy[q.family], strict=True):
                power = _growth(whole, x, centre, way * width, env)
                if power >= moments - NEARLY:
                    raise ValuesError(
                        f"The law of {q.family.name} has heavy tails, a density that falls like "
                        f"|{q.family.name}|**-{1 + moments:.3g}: {name} is the average of a quantity "
                        f"that grows like its power {power:.3g}, and is infinite.",
                        f"laws with moments of order {power:.3g}, such as Gaussian ones",
                        "a loss that grows more slowly, such as absolute deviations or Huber's",
                    )


def _integrands(expr: Expr) -> Iterator[tuple[Any, Dummy, Expr]]:
    """For each parameter that is averaged: it, a symbol for it, and what of the whole expression is averaged over it.

    Averages may be infinite one by one, and together finite.
    """
    nodes = sorted(expr.atoms(Average, Sum), key=str)
    for q in sorted({q for n in nodes for q in own_quantities(n.args[0])}, key=str):
        x = Dummy("x", real=True)
        bodies = {n: n.args[0].xreplace({q: x}) for n in nodes if q in own_quantities(n.args[0])}
        yield q, x, expr.xreplace({n: Average(b) if own_quantities(b) else b for n, b in bodies.items()})


def _check_poles(exprs: Mapping[str, Expr], laws: Mapping[Any, Any], env: Mapping[Any, Any]) -> None:
    """Refuse averages of what grows at zero at least as quickly as a density with weight there falls."""
    for q, variable in ((q, v) for law in laws.values() for q, v in law.continuous if not isinstance(v, Counting)):
        _, width = location(variable)
        low, high = (float(end) for end in (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup))
        ways = [way for way in (-1, 1) if all(low < way * width * t < high for t in TOWARDS)]
        for name, expr in exprs.items() if ways else ():
            for body, x, fine in _with_poles(expr, q):
                if variable in fine:
                    continue
                power = next((r for way in ways if (r := _rise(body, x, way * width, variable, env)) is not None), None)
                if power is not None:
                    raise ValuesError(
                        f"{name} is infinite: it is the average of a quantity that grows like "
                        f"|{q.name}|**-{power:.3g} near zero, where the law of {q.name} has too much weight.",
                        f"laws of {q.name} that keep away from zero",
                        f"{{{q.name}: {{1: '1/2', -1: '1/2'}}}}; a condition with a slack in place of a hard one",
                    )
                fine.add(variable)  # powers do not change with the values of parameters


@lru_cache(maxsize=1024)
def _with_poles(expr: Expr, family: Any) -> list[tuple[Pass, Dummy, set[Any]]]:
    """Where averages divide by a parameter: what is averaged over it, its symbol there, laws known to be fine."""
    bodies = [node.args[0] for node in expr.atoms(Average, Sum)]
    own = {q for body in bodies for p in body.atoms(Pow) if p.exp.is_negative for q in own_quantities(p.base)}
    if not any(q.family == family for q in own):
        return []
    bent = {q for node in _bent_in(expr) for q in own_quantities(node.args[0])}
    return [
        (Pass([whole]), x, set())
        for q, x, whole in _integrands(expr)
        if q.family == family and q not in bent and any(p.exp.is_negative and p.base.has(x) for p in whole.atoms(Pow))
    ]


def _bent_in(expr: Expr) -> set[Expr]:
    """The averages that an expression, or an average in it, is not linear in.

    A product of averages may be finite where that of a product is not, and an average inside another is a number there.
    """
    marks = {n: Dummy() for n in sorted(expr.atoms(Average, Sum), key=str)}
    plain = expr.xreplace(marks)
    outer = [n for n, mark in marks.items() if plain.has(mark)]
    bent = {n for n in outer if plain.diff(marks[n]).has(*marks.values())}
    return bent.union(*(_bent_in(n.args[0]) for n in outer))


def _rise(body: Pass, x: Dummy, width: float, variable: Any, env: Mapping[Any, Any]) -> float | None:
    """The power with which an integrand grows at zero, where it is not integrable; None where it is, or is not told.

    It is the same power over many orders: rounding does not grow in the first of them, what is only small in the last.
    """
    pdf = density_of(variable)

    def at(place: float) -> tuple[float, float]:
        return abs(float(body.at({**env, x: place}, body.grids())[0][0])), float(pdf(place))

    found = where_defined(lambda: [at(width * t) for t in TOWARDS], also=(TypeError, ValuesError))
    if found is None:
        return None
    steps = np.diff(np.log(TOWARDS))[[0, 1, 3]]
    with np.errstate(all="ignore"):
        rise, fall = (np.diff(np.log([pair[k] for pair in found]))[[0, 1, 3]] / steps for k in (0, 1))
    if not np.all(np.isfinite([rise, fall])) or np.ptp(rise) > STEADY or np.ptp(fall) > STEADY:
        return None
    return -float(rise[-1]) if rise[-1] + fall[-1] <= STEADY - 1 else None


def _growth(body: Expr, x: Dummy, centre: float, width: float, env: Mapping[Any, Any]) -> float:
    """The power with which an expression grows; none where rounding is all that does, or where it cannot be told."""
    one = Pass([body])

    def size(place: float) -> float:
        return abs(float(one.at({**env, x: centre + width * place}, one.grids())[0][0]))

    sizes = where_defined(lambda: list(map(size, (-1.0, 0.0, 1.0, *PLACES))), also=(TypeError,))
    if sizes is None:
        return -np.inf
    core, near, far = max(sizes[:3]), *sizes[3:]
    return float(np.log(far / near) / np.log(PLACES[1] / PLACES[0])) if far > GROWN * core and near > 0 else -np.inf
