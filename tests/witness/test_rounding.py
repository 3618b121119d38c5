"""Claims whose terms all vanish at the solved point have no digits to be compared, and are no contradiction."""

from sympy import Sum, Symbol, exp, log

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, i, mu
from symcavity.witness.points import solved_point


def test_a_bias_that_vanishes_by_symmetry_is_no_contradiction():
    """Labels and attributes are even: the bias is zero, and so is each average in its condition, to rounding."""
    x, w, b, c = Coupling("x"), Feature("w"), Global("b"), Symbol("c", positive=True)
    y, a = (Quenched(name, mu, law={1: "1/2", -1: "1/2"}) for name in "ya")
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(
        Sum(log(1 + exp(-y[mu] * (h + b))), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2,
        [Sum(a[mu] * h, (mu, 1, P)) <= c * P, Sum(a[mu] * h, (mu, 1, P)) >= -c * P],
    )
    theory = problem.cavity()
    assert abs(solved_point(theory, 50, sized=False)[0].number(b)) < 1e-12
    assert not theory.derivation.verify().failed
