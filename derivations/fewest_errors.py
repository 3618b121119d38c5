"""Weights that make the fewest errors: a perceptron above its capacity, with every error counted alike.

A field below the margin ``kappa`` is an error. It is moved to the margin where that costs the others less than one
error, and left where it is elsewhere: the fields have a gap below the margin. Below the capacity, ``alpha = 2`` at
``kappa = 0``, there is no error. The weights jump from one choice of errors to another: one lowest state is an
approximation.

E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988).
"""

from sympy import Eq, Heaviside, Rational, Sum, Symbol

from symcavity import Coupling, Feature, N, P, Problem, alpha, average, i, mu, response

x, w, kappa = Coupling("x"), Feature("w"), Symbol("kappa", positive=True)
wrong = Heaviside(kappa - Sum(x[mu, i] * w[i], (i, 1, N)))

problem = Problem(
    minimize=Sum(wrong, (mu, 1, P)),
    subject_to=[Eq(Sum(w[i] ** 2, (i, 1, N)), N)],
    named={Symbol("epsilon"): average(wrong)},
    name="Weights that make the fewest errors",
    says=(
        "Up to α = 2 points per weight no error is left at zero margin. Above the capacity the fields have a gap "
        "below the margin: an error that is cheap to mend is mended. One lowest state is an approximation here."
    ),
    cite="E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988)",
)
h = problem["h"]
values = {alpha: 3, kappa: Rational(1, 2)}
shown = [average(Heaviside(kappa - h[mu])), response(w)]
instances = False  # nobody finds the lowest of so many minima on a sphere
