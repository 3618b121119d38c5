"""Random linear programs: the best vertex of a random polytope.

The value of the best vertex is ``V`` per variable.

Values: ``alpha``, constraints over variables, and the means ``c`` of the objective. With random constraints
that hold at zero, the polytope is bounded from ``alpha = 2`` on (Wendel's theorem).
"""

from sympy import Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, alpha, average, i, mu

x, w, c = Coupling("x"), Feature("w"), Quenched("c", i)

problem = ConvexProblem(
    minimize=-Sum(c[i] * w[i], (i, 1, N)),
    subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) <= 1],
    named={Symbol("V"): average(c[i] * w[i])},
    name="Random linear programs",
    says=(
        "The polytope of αN random constraints is bounded from α = 2 on. At α = 4 its best vertex has the value "
        "0.94 per variable."
    ),
    cite="J. G. Wendel, Math. Scand. 11, 109 (1962)",
)
values = {alpha: 4, c: {1: 1}}
shown = [average(c[i] * w[i]), average(w[i] ** 2)]
