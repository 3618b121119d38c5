"""Two sites whose couplings have variances that differ from site to site: random matrices, instances, a broken rule."""

import numpy as np
import pytest
from sympy import Abs, Eq, Integer, Max, Rational, Sum, Symbol, tanh
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, System, UnsupportedLaw, Variable, alpha, i, mu
from symcavity.method import pair as pair_module
from symcavity.witness.judge import judge

HALF = Rational(1, 2)
w, gamma = Feature("w"), Symbol("gamma", positive=True)
l, s, e = Quenched("l", i), Quenched("s", mu), Quenched("e", mu)
STRENGTHS = {HALF: HALF, Rational(5, 2): HALF}
VALUES = {alpha: 2, gamma: HALF, e: Normal("e", 0, HALF)}


def heard(variance):
    return Sum(Coupling("x", variance=variance)[mu, i] * w[i], (i, 1, N))


def ridge(variance):
    return ConvexProblem(Sum((e[mu] - heard(variance)) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


@pytest.mark.parametrize("which", ["features", "data", "both"])
def test_ridge_is_as_random_matrices_are(which):
    """``C = R X'X R/4`` with ``R`` the inverse of ``X'X + gamma``."""
    used = [q for q, here in ((l, which != "data"), (s, which != "features")) if here]
    variance = 1 / N
    for q in used:
        variance = variance * q.at_site()
    theory = ridge(variance).cavity()
    found = theory.solve({**VALUES, **dict.fromkeys(used, STRENGTHS)})
    n, seen = 400, []
    for seed in range(8):
        rng = np.random.default_rng([7, seed])
        strong = np.repeat([0.5, 2.5], n // 2), np.repeat([0.5, 2.5], n)
        data = rng.standard_normal((2 * n, n)) / np.sqrt(n)
        data = data * np.sqrt(strong[0]) if l in used else data
        data = data * np.sqrt(strong[1])[:, None] if s in used else data
        inverse = np.linalg.inv(data.T @ data + np.eye(n) / 2)
        own = inverse @ data.T @ data @ inverse / 4
        off = own - np.diag(np.diag(own))
        seen.append((np.trace(own) / n, np.sum(off**2) / n, np.trace(own) ** 2 / n / np.sum(own**2)))
    known = found.covariance(w, over=[e])
    values = [float(v) for v in (known.variance, known.off_diagonal, known.dimension)]
    error = np.std(seen, 0, ddof=1) / np.sqrt(8)
    assert np.all(abs(np.mean(seen, 0) - values) < 4 * error + np.array(values) / n)
    plain = ridge(1 / N).cavity().solve(VALUES).dimension(w, over=[e])
    assert abs(float(plain) - values[2]) > 8 * error[2]
    assert found.spectrum(w, over=[e]).moments(2)[1] == pytest.approx(float(known.moments[1]), rel=1e-10)


def test_a_sparse_fit_with_strong_and_weak_features():
    """A lasso of a teacher, whose inputs have two sizes, against instances that keep their data."""
    t = Quenched("t", i, law={0: Rational(3, 4), 2: Rational(1, 4)})
    x = Coupling("x", variance=l[i] / N)
    rest = (e[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N))) ** 2
    problem = ConvexProblem(Sum(rest, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)))
    values = {**VALUES, l: STRENGTHS}
    known = float(problem.cavity().solve(values).dimension(w, over=[e]))
    seen = problem.simulate(values, N=100, seeds=8).dimension(w, over=[e], draws=40)
    assert abs(seen.mean - known) < 4 * seen.stderr + 3 * known / 100


def network():
    x, b, j = Variable("x", i), Quenched("b", i), Symbol("j", integer=True)
    strong = Coupling("J", between=(i, i), variance=l[i] / N)
    return System([Eq(x[i], HALF * Sum(strong[i, j] * tanh(x[j]), (j, 1, N)) + b[i])]), x, b


def test_a_network_whose_neurons_hear_more_or_less():
    net, x, b = network()
    values = {b: Normal("b", 0, 1), l: STRENGTHS}
    known = float(net.cavity().solve(values).dimension(x, over=[b]))
    seen = net.simulate(values, N=100, seeds=8).dimension(x, over=[b], draws=40)
    assert abs(seen.mean - known) < 4 * seen.stderr + known / 100


@pytest.mark.parametrize("make", [lambda: ridge(l[i] * s[mu] / N).cavity().pair(over=[e]), network], ids=["fit", "net"])
def test_the_record_is_judged_by_matrices_of_such_couplings(make):
    made = make()
    pair = made[0].cavity().pair(over=[made[2]]) if isinstance(made, tuple) else made
    steps = [step for step in pair.derivation if step.key.startswith("pair.") and step.claims]
    assert len(steps) == 4
    assert "couplings are those of one variance times" in " ".join(pair.derivation.to_text().split())
    assert all(v.ok for step in steps for v in judge(step))


def test_a_scale_that_is_left_out_is_seen(monkeypatch):
    """The sabotage: what a site hears has the same strength everywhere."""
    monkeypatch.setattr(pair_module, "scales", lambda f: (Integer(1), pair_module.weighed(f) / f.emission))
    monkeypatch.setattr(pair_module, "in_scales", lambda e, *_: e.xreplace(dict.fromkeys(e.atoms(type(l[i])), 1)))
    steps = {step.key: step for step in ridge(l[i] / N).cavity().pair(over=[e]).derivation}
    assert not all(v.ok for v in judge(steps["pair.close"]))


def test_a_sum_of_strengths_is_refused():
    with pytest.raises(UnsupportedLaw, match="variance is a sum"):
        ridge((l[i] + s[mu]) / N).cavity().pair(over=[e])


def test_kinks_and_strengths_beside_a_second_kind_of_data():
    """A weight that is cut, between strong and weak data: beside given strengths, by instances."""
    cut = ConvexProblem(
        Sum((e[mu] - heard(s[mu] / N)) ** 2, (mu, 1, P)) / 2 + Sum(Max(0, w[i]) ** 2 + w[i] ** 2 / 4, (i, 1, N))
    )
    values = {**VALUES, s: STRENGTHS}
    del values[gamma]
    known = float(cut.cavity().solve(values).dimension(w, over=[e]))
    seen = cut.simulate(values, N=100, seeds=8).dimension(w, over=[e], draws=40)
    assert abs(seen.mean - known) < 4 * seen.stderr + known / 100
