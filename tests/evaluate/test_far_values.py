"""Parameters far from one, where a bias or a mean has to be found along with the moments: limits known by hand."""

import pytest
from sympy import Rational

from symcavity import FlatMinimum, alpha, average, i
from symcavity.derivations import clusters_hinge, clusters_logistic, elastic_net, minority, random_features


def solved(module, **given):
    names = {str(s): s for s in module.values}
    return module.problem.cavity().solve({**module.values, **{names[k]: v for k, v in given.items()}})


def norm(module, solution):
    return float(solution[average(module.w[i] ** 2)])


@pytest.mark.parametrize("gamma", ["1e4", "1e9"])
def test_a_strong_ridge_sums_the_data(gamma):
    """Logistic loss: each datum pulls by 1/2, and has a mean."""
    solution = solved(clusters_logistic, gamma=gamma)
    load = 2
    assert abs(norm(clusters_logistic, solution) * float(gamma) ** 2 - (load**2 + load) / 4) < 10 / float(gamma)


def test_a_weak_ridge_is_none():
    """Where the unpenalised minimum exists, the norm goes to it in proportion to the penalty."""
    found = [norm(clusters_logistic, solved(clusters_logistic, alpha=8, gamma=g)) for g in ("1e-3", "1e-6", "1e-9")]
    assert abs((found[0] - found[2]) / (found[1] - found[2]) - 1000) < 20


@pytest.mark.parametrize("share", ["1e-2"])
def test_a_class_that_hardly_counts_moves_the_weights_little(share):
    """The bias satisfies the other class, and the weights follow the few forces on it, in proportion."""
    c = clusters_hinge
    one, other = (solved(c, r=r) for r in (share, Rational(share) / 10))
    for power, observable in ((1, average(c.m[i] * c.w[i])), (2, average(c.w[i] ** 2)), (1, 1 - c.b)):
        assert abs(float(one[observable] / other[observable]) - 10**power) < 1e-6


def test_equal_weights_of_unequal_classes():
    c = clusters_hinge
    values = {**c.values, alpha: 8, c.r: 1}
    table = c.problem.cavity().compare(c.problem.simulate(values, N=100, seeds=6), [average(c.w[i] ** 2), c.b])
    assert all(abs(row.z) < 5 for row in table.rows)


def test_a_penalty_that_leaves_no_weight():
    """All weights vanish, and what is left is the noise and the teacher."""
    e = elastic_net
    solution = solved(e, alpha=1, C=1000)
    assert norm(e, solution) == 0
    assert float(solution[average((e.t[i] - e.w[i]) ** 2)]) == pytest.approx(float(solution[average(e.t[i] ** 2)]))


@pytest.mark.parametrize("gamma", ["1e-6", "1e-9"])
def test_random_features_that_interpolate(gamma):
    """More features than data: the norm goes to that of the interpolation, in proportion to a weak penalty."""
    names = {str(s): s for s in random_features.values}
    theory = random_features.problem.cavity()
    v = random_features.v
    a = next(iter(v.slots)).index
    found = []
    for penalty in ("1e-3", "1e-4", gamma):
        values = {**random_features.values, alpha: 1, names["K/N"]: 3, names["gamma"]: penalty}
        found.append(float(theory.solve(values)[average(v[a] ** 2)]))
    assert abs(found[2] - (10 * found[1] - found[0]) / 9) < 1e-6


@pytest.mark.parametrize("load", ["0.3373", "0.33"])
def test_the_minority_game_is_flat_below_its_transition(load):
    with pytest.raises(FlatMinimum) as found:
        minority.problem.cavity().solve({**minority.values, alpha: load})
    assert found.value.evidence.way == "larger"
    assert abs(found.value.evidence.load - 0.33740018858708759188) < 1e-4
