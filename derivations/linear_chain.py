"""A chain of random linear layers whose last one is learned: regression through a product of random matrices.

The generalization error, of labels without noise, is ``E_g``.

Values: ``alpha = P/N``, the widths ``K/N`` and ``L/K``, the penalty ``gamma``, the law of the teacher. The
spectrum that the last layer sees is that of a product of three Wishart matrices.

J. A. Zavatone-Veth, W. L. Tong, C. Pehlevan, Phys. Rev. E 105, 064118 (2022), on deep linear models with
random layers.
"""

from sympy import Eq, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, N, P, Quenched, Sites, Variable, alpha, average, i, mu

a, K = Sites("a", "K", "first layer unit")
b, L = Sites("b", "L", "second layer unit")
x, F, G = Coupling("x"), Coupling("F", between=(a, i)), Coupling("G", between=(b, a))
s, r, v, t = Variable("s", i), Variable("r", a), Variable("v", b), Quenched("t", i)
gamma = Symbol("gamma", positive=True)

problem = ConvexProblem(
    minimize=Sum(Sum(x[mu, i] * (t[i] - s[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2 + gamma * Sum(v[b] ** 2, (b, 1, L)) / 2,
    subject_to=[Eq(s[i], Sum(F[a, i] * r[a], (a, 1, K))), Eq(r[a], Sum(G[b, a] * v[b], (b, 1, L)))],
    named={Symbol("E_g"): average((t[i] - s[i]) ** 2)},
    name="A chain of random linear layers",
    says=(
        "Wide random layers change little. A layer that is narrower than the input leaves a part of the teacher "
        "unlearned, however many the data are: the share of directions that the layer does not span."
    ),
    cite="J. A. Zavatone-Veth, W. L. Tong, C. Pehlevan, Phys. Rev. E 105, 064118 (2022)",
)
values = {
    alpha: 2,
    K / N: Rational(3, 2),
    L / K: Rational(4, 5),
    gamma: Rational(1, 2),
    t: Normal("t", 0, 1),
}
shown = [average((t[i] - s[i]) ** 2), average(v[b] ** 2)]
