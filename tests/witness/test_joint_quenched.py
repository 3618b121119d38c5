"""Witnesses of laws that are solved together and hold a quenched parameter, over which averages are taken."""

from sympy import Eq, Sum, exp, log, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, Sites, Variable, i, mu
from symcavity.witness.judge import judge

a, K = Sites("a", "K")


def test_an_average_over_quenched_values_of_what_a_joint_law_gives_is_computed():
    s, t = Quenched("s", mu, positive=True), Quenched("t", i)
    x, z, F = Coupling("x"), Coupling("z", between=(mu, a)), Coupling("F", between=(a, i))
    w, h = Variable("w", i), Variable("h", a)
    error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) + Sum(z[mu, a] * h[a], (a, 1, K))
    problem = ConvexProblem(
        Sum(h[a] ** 4 / 4, (a, 1, K)) + Sum(s[mu] * sqrt(1 + error**2), (mu, 1, P)),
        [Eq(w[i], Sum(F[a, i] * h[a], (a, 1, K)))],
    )
    found = problem.cavity().derivation.verify()
    assert not found.failed
    assert not found.unchecked


def test_averages_without_a_label_are_held_where_its_law_has_weights_that_are_formulas():
    x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
    h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
    y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
    derivation = ConvexProblem(minimize=Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P))).cavity().derivation
    held = {s.key: s for s in derivation.steps if s.key in ("feature.response", "closure.q_w")}
    assert len(held) == 2
    for step in held.values():
        assert all(verdict.ok for verdict in judge(step, 20)), step.key
