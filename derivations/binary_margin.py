"""The largest margin of binary weights: at zero temperature, with one lowest state, and why that is wrong.

Every field is at least ``M``, as large as may be. With one lowest state the margin vanishes at ``alpha = 4/pi = 1.27``,
which would be the capacity. But the entropy has the limit minus infinity at zero temperature, and solving says so: the
equations count fewer than one choice of weights there. The number of choices without an error
(``binary_perceptron``, at large ``beta``) falls to one at ``alpha = 0.833``, the capacity.

E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988); W. Krauth, M. Mézard, J. Phys. (France) 50, 3057 (1989).
"""

from sympy import Sum

from symcavity import Coupling, Feature, Global, N, Problem, alpha, i, mu, response

x, s, M = Coupling("x"), Feature("s", values=(-1, 1)), Global("M")

problem = Problem(
    minimize=-N * M,
    subject_to=[Sum(x[mu, i] * s[i], (i, 1, N)) >= M],
    name="The largest margin of binary weights",
    says=(
        "With one lowest state the margin of binary weights vanishes at α = 4/π = 1.27. This is no capacity: the "
        "entropy is negative there, and weights without an error exist up to α = 0.833 only."
    ),
    cite="E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988); W. Krauth, M. Mézard, J. Phys. (France) 50, 3057 (1989)",
)
values = {alpha: 1}
shown = [M, response(s)]
instances = False  # the margin is no energy of a site
