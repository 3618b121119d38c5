"""A signal of signs in a symmetric matrix of noise: the posterior of a spike of rank one.

What is seen is ``Y = sqrt(lambda)*t*t'/N + J``. Both signs of the signal are as good as each other, so that the
posterior has two mirror images, of which one is shown. The overlap is ``q = <tanh(lambda*q + sqrt(lambda*q)*z)>``;
below ``lambda = 1`` nothing of the signal is seen. The error ``1 - q**2`` of the matrix ``t*t'`` is the smallest that
there is.

Values: ``lambda``, the ratio of signal to noise.

Y. Deshpande, E. Abbe, A. Montanari, Information and Inference 6, 125 (2017); M. Dia, N. Macris, F. Krzakala, T.
Lesieur, L. Zdeborová, in Advances in Neural Information Processing Systems 29 (2016).
"""

from sympy import Rational, Sum, Symbol, sqrt

from symcavity import Coupling, Feature, N, Problem, Quenched, average, expect, i

j, snr = Symbol("j", integer=True), Symbol("lambda", positive=True)
s, t = Feature("s", values=(-1, 1)), Quenched("t", i, law={1: Rational(1, 2), -1: Rational(1, 2)})
Y = Coupling("Y", between=(i, i), reciprocity=1, mean=sqrt(snr) * t[i] * t[j] / N)

problem = Problem(
    minimize=-sqrt(snr) * Sum(s[i] * Sum(Y[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2,
    named={Symbol("E_Y"): 1 - average(expect(s[i]) ** 2) ** 2},
    name="A signal of signs in a noisy matrix",
    says=(
        "Below the signal-to-noise ratio λ = 1 nothing of the signal can be seen. Above, the overlap q with it is "
        "the positive root of q = <tanh(λ q + √(λ q) z)>, 0.917 at λ = 4."
    ),
    cite=(
        "Y. Deshpande, E. Abbe, A. Montanari, Information and Inference 6, 125 (2017); M. Dia, N. Macris, F. Krzakala, "
        "T. Lesieur, L. Zdeborová, in Advances in Neural Information Processing Systems 29 (2016)"
    ),
).gibbs(1)
values = {snr: 4}
shown = [average(expect(s[i]) ** 2)]
