"""The largest margin of binary weights: at zero temperature, with one lowest state, and why that is wrong.

Every field is at least ``M``, as large as may be. With one lowest state the margin vanishes at ``alpha = 4/pi = 1.27``, which
would be the capacity. But there are at most ``2**N`` choices of weights, and one per feature is one bit: the entropy in the limit
of zero temperature is minus infinity, and solving says so. The number of choices without an error (``binary_perceptron``, at
large ``beta``) falls to one at ``alpha = 0.833``, the capacity.

E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988); W. Krauth, M. Mezard, J. Phys. (France) 50, 3057 (1989).
"""

from sympy import Sum

from symcavity import Coupling, Feature, Global, N, Problem, alpha, i, mu, response

x, s, M = Coupling("x"), Feature("s", values=(-1, 1)), Global("M")

problem = Problem(
    minimize=-N * M,
    subject_to=[Sum(x[mu, i] * s[i], (i, 1, N)) >= M],
    name="The largest margin of binary weights",
    cite="E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988); W. Krauth, M. Mezard, J. Phys. (France) 50, 3057 (1989)",
)
values = {alpha: 1}
shown = [M, response(s)]
instances = False  # the margin is no energy of a site
