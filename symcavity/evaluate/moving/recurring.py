"""The stationary state of sites that hear themselves, by kernels over the lag that are iterated.

The state has to be the same on a ring of half the length: states that age are as slow as the ring is long.
"""

from __future__ import annotations

from typing import Any

from sympy import Rational

from symcavity.errors import NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.flow import check_stable, read_span, scheme
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.ring import SOURCES
from symcavity.evaluate.moving.sampled_stationary import SampledStationary
from symcavity.evaluate.moving.settled import SettledSites, distance, first_kernels, on_another_ring
from symcavity.evaluate.moving.values import read_run_values, read_steps
from symcavity.method.theory import Theory

SAME = 4.0  # standard errors, root mean square over lags, by which kernels on rings of two lengths may differ


def recurring(theory: Any, values: Any, until: Any, step: Any, paths: int, seed: int) -> SampledStationary:
    """Sample the stationary state of sites that hear themselves.

    Raises
    ------
    NotConverged
        If kernels keep changing, or depend on the length of the ring: no stationary state is seen.
    """
    flowing = theory.system.flowing
    if flowing:
        size, half = read_span(until, step)
        check_stable(theory.system, read_run_values(theory.system, values, 15), size)
        sizes = [size, size / 2]
    else:
        if step is not None:
            raise ValuesError(f"step = {step}, of a system in steps.", "until= alone, the longest lag")
        size, half, sizes = None, read_steps(until), [None]
    half += half % SOURCES and SOURCES - half % SOURCES
    if half < 4 * SOURCES:
        raise ValuesError(f"The longest lag is {half} steps.", f"at least {4 * SOURCES} steps")
    made = {d: _planned(theory, values, d) for d in sizes}
    inner, plan = made[sizes[0]]
    first, begun = first_kernels(plan, 2 * half, seed)
    settled = {sizes[0]: SettledSites(inner, plan, first, paths, seed, begun)}
    coarse = settled[sizes[0]]
    short = SettledSites(inner, plan, on_another_ring(coarse.kernels, half, 1), paths, seed + 1, begun)
    _check_length(coarse, short, half, 1 if size is None else size)
    for d in sizes[1:]:
        finer = on_another_ring(coarse.kernels, 4 * half, 2)
        settled[d] = SettledSites(*made[d], finer, paths, seed, begun)
    return SampledStationary(theory, values, settled, size, half, (paths, seed))


def _planned(theory: Any, values: Any, size: Any) -> tuple[Any, MovingPlan]:
    inner = theory if size is None else Theory(scheme(theory.system, Rational(size)))
    plan = MovingPlan(inner, read_run_values(inner.system, values, 15))
    if still := [q for q in plan.rows if q.time is None]:
        raise UnsupportedLaw(
            f"{still[0]} does not depend on time, and other states do.", "systems in which all states depend on time"
        )
    return inner, plan


def _check_length(long: SettledSites, short: SettledSites, half: int, step: Any) -> None:
    lags = half // 4
    gap = distance(long.kernels, short.kernels, lags, long.sizes)
    if gap > SAME:
        raise NotConverged(
            f"No stationary state is seen: up to the lag {float(lags * step):g} kernels differ by {gap:.1f} standard "
            f"errors between rings of {float(2 * half * step):g} and of {float(half * step):g}.",
            hint="a longer until=; states that age have no stationary state",
        )
