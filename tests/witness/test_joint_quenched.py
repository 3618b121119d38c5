"""Witnesses of laws that are solved together and hold a quenched parameter, over which averages are taken."""

from dataclasses import replace

from sympy import Eq, Max, Rational, Sum, Symbol, exp, log, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, Sites, Variable, i, mu
from symcavity.model.equations import Equation
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


def test_two_copies_whose_labels_a_teacher_draws_are_judged_by_the_law_solved_again():
    """Weights of labels hold the teacher's field: they are summed over, and answer to it as the states do."""
    x, w, t, gamma = Coupling("x"), Feature("w"), Quenched("t", i), Symbol("gamma", positive=True)
    h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
    y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
    loss = Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N))
    derivation = ConvexProblem(loss).copies(2, share={y: 0}).cavity().derivation
    keys = ["datum.solution", *(s.key for s in derivation.steps if s.key.startswith("closure.S_lambda_to_u"))]
    keys += [s.key for s in derivation.steps if s.key.startswith("closure.q_g")][:1]
    assert len(keys) == 3
    for step in (derivation[key] for key in keys):
        assert all(verdict.ok for verdict in judge(step, 20)), step.key
    for step in (derivation[key] for key in keys[:2]):
        claims = tuple(Equation(c.lhs, c.rhs * Rational(101, 100)) for c in step.claims)
        assert not all(verdict.ok for verdict in judge(replace(step, claims=claims), 20)), step.key


def test_labels_that_stand_in_bounds_alone_have_values_there():
    """Two quantiles with tied weights: the label is in the pairs of the law, and in none of its equations."""
    x, w, v, y = Coupling("x"), Feature("w"), Feature("v"), Quenched("y", mu)
    losses = [
        Max(level * rest, (level - 1) * rest)
        for level, s in ((Rational(1, 4), w), (Rational(3, 4), v))
        for rest in [y[mu] - Sum(x[mu, i] * s[i], (i, 1, N))]
    ]
    tied = Sum(w[i] ** 2 + (v[i] - w[i]) ** 2, (i, 1, N))
    derivation = ConvexProblem(Sum(sum(losses), (mu, 1, P)) + tied).cavity().derivation
    for key in ("datum.solution", "datum.differentiate"):
        step = derivation[key]
        assert all(verdict.ok for verdict in judge(step, 20)), key
        claims = tuple(Equation(c.lhs, 2 * c.rhs + 1) for c in step.claims)
        assert not step.claims or not all(verdict.ok for verdict in judge(replace(step, claims=claims), 20)), key
