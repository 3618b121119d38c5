"""Lotka and Volterra's equations in time: their fixed point is the law at rest; beyond it they age, or explode."""

from itertools import pairwise

import numpy as np
import pytest
from sympy import Derivative, Eq, Rational, Sum, Symbol, sqrt
from sympy.stats import Uniform

from symcavity import Coupling, N, NotConverged, Quenched, System, Time, Variable, average, i
from symcavity.derivations import moving_species

t, s, j = Time("t"), Time("s"), Symbol("j")
sigma, r = Symbol("sigma", positive=True), Symbol("r", real=True)
n, a = Variable("n", i, over=t), Quenched("a", i)
A = Coupling("A", between=(i, i), variance=sigma**2 / N, reciprocity=r)
COMING = Rational(1, 10)
MOVING = System(
    [Eq(Derivative(n[i, t], t), n[i, t] * (1 - n[i, t] - Sum(A[i, j] * n[j, t], (j, 1, N))) + COMING)],
    initial=[Eq(n[i, 0], a[i])],
)


@pytest.mark.parametrize(("spread", "reciprocity"), [("1/2", "1/2"), ("3/5", "-1/2")])
def test_the_fixed_point_is_the_law_at_rest(spread, reciprocity):
    """With immigration an abundance is the positive root of n (h - n) + 1/10 = 0, at what is left of the capacity."""
    v, h = Variable("v", i), Variable("h", i)
    at_rest = System(
        [Eq(h[i], 1 - Sum(A[i, j] * v[j], (j, 1, N))), Eq(v[i], (h[i] + sqrt(h[i] ** 2 + 4 * COMING)) / 2)]
    )
    solution = at_rest.cavity().solve({sigma: spread, r: reciprocity})
    rest = MOVING.cavity().stationary(
        {sigma: spread, r: reciprocity, a: Uniform("a", 0, 1)}, until=16, step="1/5", paths=2000, seed=3
    )
    assert not rest.moves
    for power in (1, 2):
        here, error = rest[average(n[i, t] ** power)], rest.errors[average(n[i, t] ** power)]
        assert abs(here - float(solution[average(v[i] ** power)])) < 4 * error
        assert error < 0.05 * here


def test_beyond_the_transition_species_age():
    """Without immigration: the longer one waits, the slower what follows; and instances do alike."""
    declared, time = moving_species.problem, moving_species.t
    abundance = moving_species.n
    values = {moving_species.c: 4, moving_species.sigma: 2, moving_species.r: 0, moving_species.K: {1: 1}}
    both = average(abundance[i, time] * abundance[i, s])
    run = declared.cavity().evolve(values, until=16, step="1/4", paths=3000, seed=1)
    correlation = run.schemes[Rational(1, 8)][both]
    size = np.sqrt(np.diag(correlation))
    correlation = correlation / np.outer(size, size)
    kept = [correlation[wait + 32, wait] for wait in (8, 16, 32, 64)]
    assert all(later > earlier + 0.02 for earlier, later in pairwise(kept))
    sim = declared.simulate(values, N=200, seeds=8, until=16, step="1/8")
    assert run.compare(sim, [both]).rows[0].rms < 2.5


def test_states_that_grow_without_bound_say_so():
    """Species that help each other as often as they compete, beyond the transition."""
    values = {sigma: "8/5", r: 0, a: Uniform("a", 0, 1)}
    with pytest.raises(NotConverged, match="grow without bound"):
        MOVING.cavity().stationary(values, until=16, step="1/10", paths=600, seed=1)
    with pytest.raises(NotConverged, match="grow without bound"):
        MOVING.cavity().evolve(values, until=12, step="1/10", paths=600, seed=1)
