"""Detection of signs through a random channel: least squares in a box, and the share of wrong bits.

The share of wrong bits is ``epsilon_b``.

Values: ``alpha``, receivers over senders, and the law of the noise. Each bit is the sign of the estimate; the
share of errors is that of a Gaussian channel with a noise of its own, known in closed form.

C. Thrampoulidis, W. Xu, B. Hassibi, IEEE Trans. Signal Process. 66, 3383 (2018).
"""

from sympy import Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

x, w = Coupling("x"), Feature("w")
bit, noise = Quenched("bit", i), Quenched("noise", mu)
received = Sum(x[mu, i] * bit[i], (i, 1, N)) + noise[mu]

problem = ConvexProblem(
    minimize=Sum((received - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2,
    subject_to=[w[i] <= 1, w[i] >= -1],
    named={Symbol("epsilon_b"): average(bit[i] * w[i] < 0)},
    name="Detection of signs in a box",
    says=(
        "The share of wrong bits is that of a Gaussian channel with a noise of its own. As the noise of the "
        "receivers vanishes, all bits are found where there are more than half as many receivers as senders."
    ),
    cite="C. Thrampoulidis, W. Xu, B. Hassibi, IEEE Trans. Signal Process. 66, 3383 (2018)",
)
half = Rational(1, 2)
values = {alpha: Rational(6, 5), bit: {1: half, -1: half}, noise: Normal("noise", 0, half)}
shown = [average((w[i] - bit[i]) ** 2), average(bit[i] * w[i] < 0)]
