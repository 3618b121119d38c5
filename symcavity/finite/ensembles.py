"""The Gibbs measure of one instance: all of its configurations, Gaussian integrals over some states, or samples."""

from __future__ import annotations

from math import log, prod
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.finite.chains import SWEEPS, annealed, sampled
from symcavity.finite.configurations import Configurations, one_configuration
from symcavity.finite.lowest_sites import descended
from symcavity.finite.smooth_energy import is_smooth, slid
from symcavity.finite.sphere import form_of, is_on_sphere, lowest_on_sphere
from symcavity.finite.square_energy import is_square_but_for_sites
from symcavity.finite.warm import WarmInstance, discrete
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.thermal.parts import split

MOST = {"enumeration": 1 << 18, "integration": 1 << 13}  # configurations that are summed over
TOGETHER = 1 << 14  # configurations whose energies are computed at once


def ensemble(w: WarmInstance, method: str = "", sweeps: int = SWEEPS) -> Configurations:
    """The Gibbs measure of an instance, by the first way that serves.

    Parameters
    ----------
    w : WarmInstance
    method : str
        ``'enumeration'`` of discrete states, ``'integration'`` over Gaussian ones at each choice of those,
        or ``'sampling'``, by Metropolis sweeps; the first that serves by default.  At zero temperature the lowest one
        is found: by ``'enumeration'``, by ``'eigenvectors'`` on a sphere, or by ``'annealing'``, and by
        ``'descent'`` of continuous states that meet by squares, or whose energies are smooth, which bound it.
    sweeps : int
        How many sweeps each chain makes.
    """
    held, states = w.sums.held, w.states  # what no configuration tells is refused first
    if silent := [q for k, weight in w.heard.items() for q in weight.states if q not in w.weighed(k)]:
        raise UnsupportedLaw(
            f"{silent[0]} stands in no sum over couplings: the configurations of an instance are those of states "
            "in such sums.",
            "instances whose states all stand in sums",
        )
    few = discrete(states)
    on_sphere = w.is_cold and bool(held) and is_on_sphere(w)
    by_sites = w.is_cold and not held and is_square_but_for_sites(w)
    downhill = w.is_cold and not by_sites and is_smooth(w)
    if w.is_cold and len(few) < len(states) and not (on_sphere or by_sites or downhill):
        raise UnsupportedLaw(
            "The lowest minimum of an instance is looked for among discrete states, on spheres, where losses are "
            "squares, and where all energies are smooth.",
            "Feature(..., values=...); losses that are squares, with penalties of squares by cases or with "
            "Eq(Sum(w[i]**2, (i, 1, N)), N); smooth losses and penalties",
            "problem.gibbs(beta).simulate(...) at large beta",
        )
    cold = "eigenvectors" if on_sphere else "descent" if by_sites or downhill else "annealing"
    count = prod(len(q.family.values) ** w.size(next(iter(q.site))) for q in few)
    able = {
        "enumeration": len(few) == len(states) and count <= MOST["enumeration"],
        **({cold: True} if w.is_cold else {
            "integration": len(states) == len(few) + 1 and count <= MOST["integration"] and _is_square(w, few),
            "sampling": True,
        }),
    }  # fmt: skip
    if method and not able.get(method, False):
        raise ValuesError(
            f"The method {method!r:.60} does not apply: there are {count} discrete configurations, "
            f"and {len(states) - len(few)} continuous states a site.",
            ", ".join(repr(name) for name, serves in able.items() if serves),
        )
    chosen = method or next(name for name, serves in able.items() if serves)
    if chosen == "eigenvectors":
        x = {w.states[0]: lowest_on_sphere(form_of(w))[None]}
        return one_configuration(chosen, x, w.energy(x))
    if chosen == "descent":
        return slid(w, sweeps) if downhill else descended(w, sweeps)
    if w.is_cold:
        return lowest_of(w, count) if chosen == "enumeration" else annealed(w, sweeps)
    if chosen == "sampling":
        return sampled(w, sweeps)
    return enumerated(w, count) if chosen == "enumeration" else integrated(w, few, count)


# -- sums ------------------------------------------------------------------------------------------


def configurations(w: WarmInstance, states: list[SiteQuantity], count: int) -> dict[Any, np.ndarray]:
    """All choices of discrete states: one row each."""
    number, out = np.arange(count), {}
    for q in states:
        values = np.array([float(v) for v in q.family.values])
        columns = []
        for _ in range(w.size(next(iter(q.site)))):
            number, place = np.divmod(number, len(values))
            columns.append(values[place])
        out[q] = np.stack(columns, axis=1)
    return out


def _summed(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    top = float(log_weights.max())
    share = np.exp(log_weights - top)
    return share / share.sum(), top + log(share.sum())


def enumerated(w: WarmInstance, count: int) -> Configurations:
    """Sum over all configurations."""
    x = configurations(w, w.states, count)
    parts = [w.energy({q: v[k : k + TOGETHER] for q, v in x.items()}) for k in range(0, count, TOGETHER)]
    energies = np.concatenate(parts)
    w.sums.check(energies)
    share, total = _summed(-w.beta * energies)
    return Configurations("enumeration", w.sums.turned(x), share, total)


def lowest_of(w: WarmInstance, count: int) -> Configurations:
    """The configuration of lowest energy, by enumeration: the first of several."""
    x = configurations(w, w.states, count)
    parts = [w.energy({q: v[k : k + TOGETHER] for q, v in x.items()}) for k in range(0, count, TOGETHER)]
    return one_configuration("enumeration", x, np.concatenate(parts))


def _is_square(w: WarmInstance, few: list[SiteQuantity]) -> bool:
    """Whether energies are squares in the only continuous state at given discrete ones."""
    if w.pairs or w.sums.tied or w.sums.held or any(weight.bounds for weight in w.system.weights.values()):
        return False
    if any(len(w.weighed(kind)) > 1 for kind in w.heard):
        return False
    free = next(q for q in w.states if q not in few)
    parts = [split(weight.energy, weight.state)[3] for weight in w.heard.values()]
    for weight in w.sent.values():
        parts += [split(weight.energy, free)[3], *split(weight.state, free)[2:]]
    return all(p == 0 for p in parts)


def integrated(w: WarmInstance, few: list[SiteQuantity], count: int) -> Configurations:
    """Sum over discrete states, and integrate over Gaussian ones at each choice of them."""
    x = configurations(w, few, count)
    free = next(q for q in w.states if q not in few)
    kind = next(iter(free.site))
    shape = (count, w.size(kind))

    def at(expr: Expr, own: list[Any], given: dict[Any, np.ndarray], rows: tuple[int, ...]) -> np.ndarray:
        return np.broadcast_to(w.call(expr, own)(*(given[q] for q in own)), rows)

    fixed, slope, curvature, _ = split(w.sent[kind].energy, free)
    constant = at(fixed, few, x, shape).sum(axis=1)
    b, c = at(slope, few, x, shape).copy(), at(curvature, few, x, shape)
    matrix = c[:, :, None] * np.eye(shape[1])
    for hearer, weight in w.heard.items():
        f = w.field(hearer)
        still, moving, *_ = split(w.emission(f).expand(), free)
        couplings = w.instance.matrix(f)
        h = at(still, few, x, shape) @ couplings.T
        share = couplings[None] * at(moving, few, x, shape)[:, None, :]
        level, first, second, _ = split(weight.energy, weight.state)
        one = (1, w.size(hearer))
        zero, l1, l2 = (at(e, [], {}, one) for e in (level, first, second))
        constant = constant + (zero + l1 * h + l2 * h**2 / 2).sum(axis=1)
        b += np.einsum("cm,cmi->ci", l1 + l2 * h, share)
        matrix = matrix + np.einsum("cmi,m,cmj->cij", share, l2[0], share)
    centre = -np.linalg.solve(matrix, b[:, :, None])[:, :, 0]
    inverse = np.linalg.inv(matrix)
    volume = shape[1] * log(2 * np.pi / w.beta) / 2 - np.linalg.slogdet(matrix)[1] / 2
    share, total = _summed(-w.beta * (constant + (b * centre).sum(axis=1) / 2) + volume)
    width = np.sqrt(np.diagonal(inverse, axis1=1, axis2=2) / w.beta)
    return Configurations("integration", {**x, free: centre}, share, total, {free: width})
