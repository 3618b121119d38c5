"""Binary weights that make few errors: the perceptron of Ising spins at a temperature, with its errors counted.

Values: ``alpha`` and ``beta``, in units of an error. The entropy per weight, ``beta*(energy - free energy)``,
falls with the load; at large ``beta`` it is that of the weights without an error, and reaches zero at ``alpha =
0.833``. A solution of negative entropy, at larger loads, counts fewer than one state: the assumption of one
valley, which stability does not see there, is wrong.

E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988); W. Krauth, M. Mézard, J. Phys. (France) 50, 3057 (1989).
"""

from sympy import Heaviside, Rational, Sum, Symbol

from symcavity import Coupling, Feature, N, P, Problem, alpha, average, expect, i, mu

x, s, beta = Coupling("x"), Feature("s", values=(-1, 1)), Symbol("beta", positive=True)

problem = Problem(
    minimize=Sum(Heaviside(-Sum(x[mu, i] * s[i], (i, 1, N))), (mu, 1, P)),
    name="Binary weights that make few errors",
    says=(
        "The entropy of the binary weights without an error falls with the load and vanishes at α = 0.833 points "
        "per weight, the capacity."
    ),
    cite="E. Gardner, B. Derrida, J. Phys. A 21, 271 (1988); W. Krauth, M. Mézard, J. Phys. (France) 50, 3057 (1989)",
).gibbs(beta)
h = problem["h"]
values = {alpha: Rational(1, 2), beta: 2}
shown = [average(expect(s[i]) ** 2), average(Heaviside(-h[mu]))]
