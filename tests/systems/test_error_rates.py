"""Fractions of errors, in training and on new data: inequalities as observables, beside teachers of all kinds."""

import pytest
from sympy import Max, Rational, Sum, Symbol, acos, exp, pi, sign, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
h, u = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
p = Symbol("p", positive=True)
LOSSES = {
    "hinge": lambda m: Max(0, 1 - m),
    "squared": lambda m: (1 - m) ** 2 / 2,
}
FLIPS = {1: (1 + (1 - 2 * p) * sign(u)) / 2, -1: (1 - (1 - 2 * p) * sign(u)) / 2}
LOGIT = {1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}


@pytest.mark.parametrize(
    ("loss", "law"),
    [("hinge", "flips"), ("squared", "flips"), ("squared", "logit")],
)
def test_the_share_of_errors(loss, law):
    """The training error against instances; that on new data, of which the instances know the angle."""
    y = {
        "flips": Quenched("y", mu, law=FLIPS, given=u)[mu],
        "logit": Quenched("y", mu, law=LOGIT, given=u)[mu],
    }[law]
    problem = ConvexProblem(Sum(LOSSES[loss](y * h), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 4)
    values = {alpha: 2, t: {1: 1}, **({p: Rational(1, 10)} if law == "flips" else {})}
    theory = problem.cavity()
    solution = theory.solve(values)
    wrong = average(y * h < 0)
    simulation = problem.simulate(values, N=100, seeds=8)
    rows = theory.compare(simulation, [wrong, average(w[i] * t[i])]).rows
    assert all(abs(row.z) < 5 for row in rows)
    cosine = solution[average(w[i] * t[i])] / sqrt(solution[average(w[i] ** 2)])
    assert 0 < solution[wrong] < float(acos(cosine) / pi) + (0.1 if law == "flips" else 0)
