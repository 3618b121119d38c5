"""Ridge regression on random features, in their Gaussian equivalent: three kinds of sites and a double descent.

Values: ``alpha = P/N``, ``K/N`` for the hidden units, the penalty ``gamma``, the moments ``c`` and ``d`` of
the nonlinearity (``c = <f'>``, ``d**2 = <f**2> - <f>**2 - c**2``), the laws of the teacher and the noise.
Without penalty the error diverges where ``K = P``.

S. Mei, A. Montanari, Commun. Pure Appl. Math. 75, 667 (2022); F. Gerace, B. Loureiro, F. Krzakala, M. Mézard,
L. Zdeborová, Int. Conf. Mach. Learn. (2020).
"""

from sympy import Eq, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, N, P, Quenched, Sites, Variable, alpha, average, fresh, i, mu

a, K = Sites("a", "K", "hidden unit")
x, F, z = Coupling("x"), Coupling("F", between=(a, i)), Coupling("z", between=(mu, a))
v, s = Variable("v", a), Variable("s", i)
t, noise = Quenched("t", i), Quenched("noise", mu)
c, d, gamma = Symbol("c", positive=True), Symbol("d", positive=True), Symbol("gamma", positive=True)
output = c * Sum(x[mu, i] * s[i], (i, 1, N)) + d * Sum(z[mu, a] * v[a], (a, 1, K))
y = Sum(x[mu, i] * t[i], (i, 1, N)) + noise[mu]
E_test = Symbol("E_test")

problem = ConvexProblem(
    minimize=Sum((y - output) ** 2, (mu, 1, P)) / 2 + gamma * Sum(v[a] ** 2, (a, 1, K)) / 2,
    subject_to=[Eq(s[i], Sum(F[a, i] * v[a], (a, 1, K)))],
    named={E_test: average(fresh((y - output) ** 2))},
    name="Ridge regression on random features",
    says=(
        "Without a penalty the error on fresh data diverges where there are as many hidden units as data, K = P, "
        "and falls again beyond: the double descent of a wide layer."
    ),
    cite=(
        "S. Mei, A. Montanari, Commun. Pure Appl. Math. 75, 667 (2022); F. Gerace, B. Loureiro, F. "
        "Krzakala, M. Mézard, L. Zdeborová, Int. Conf. Mach. Learn. (2020)"
    ),
)
half = Rational(1, 2)
values = {
    alpha: 2,
    K / N: Rational(3, 2),
    gamma: Rational(1, 10),
    c: 1,
    d: half,
    t: Normal("t", 0, 1),
    noise: Normal("noise", 0, half),
}
shown = [average((t[i] - c * s[i]) ** 2), average(v[a] ** 2)]
