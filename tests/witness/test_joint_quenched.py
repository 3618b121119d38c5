"""Witnesses of laws that are solved together and hold a quenched parameter, over which averages are taken."""

from sympy import Eq, Sum, sqrt

from symcavity import ConvexProblem, Coupling, N, P, Quenched, Sites, Variable, i, mu

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
