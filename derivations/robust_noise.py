"""What a robust fit makes of noise: Huber's loss with ridge penalty, where there is nothing to learn.

As the true weights are zero, ``E_w`` is the error of the estimate.

Values: ``alpha``, the knee ``d`` of the loss, the penalty ``gamma``, the law of the noise. Over the noise, at given
inputs, the weights explore ``solution.dimension(w, over=[xi])`` of all directions: that of ridge regression with the
penalty ``gamma/k``, where ``k = -S_lambda/(1 + S_lambda*S_w)`` is the slope at the full field.

N. El Karoui, D. Bean, P. J. Bickel, C. Lim, B. Yu, Proc. Natl. Acad. Sci. 110, 14557 (2013), on the overlaps.
"""

from sympy import Abs, Piecewise, Rational, Sum, Symbol, symbols
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, response

x, w, xi = Coupling("x"), Feature("w"), Quenched("xi", mu)
d, gamma = symbols("d gamma", positive=True)
r = xi[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
loss = Piecewise((r**2 / 2, Abs(r) <= d), (d * Abs(r) - d**2 / 2, True))

problem = ConvexProblem(
    minimize=Sum(loss, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={Symbol("E_w"): average(w[i] ** 2)},
    name="A robust fit of noise",
    says=(
        "Huber's loss fits less of pure noise than the square does. Over the noise, at given inputs, its weights "
        "explore as many directions as those of a ridge regression with a larger penalty."
    ),
    cite="N. El Karoui, D. Bean, P. J. Bickel, C. Lim, B. Yu, Proc. Natl. Acad. Sci. 110, 14557 (2013)",
)
values = {alpha: Rational(3, 2), d: Rational(3, 10), gamma: Rational(1, 10), xi: Normal("xi", 0, 1)}
shown = [average(w[i] ** 2), average(response(w[i]))]
