"""Learning curves of spectra that are power laws: how fast a kernel learns what lies in its slow modes.

The generalization error is ``E_g``.

Values: arrays of the variances ``l`` of the features and of the teacher's weights ``t``, ``P``, and
``gamma``. With ``l = i**-a`` and ``l t**2 = i**-b`` the error falls as ``P**-(min(b - 1, 2 a))`` without
noise and penalty.

S. Spigler, M. Geiger, M. Wyart, J. Stat. Mech. 124001 (2020); B. Bordelon, A. Canatar, C. Pehlevan, Int.
Conf. Mach. Learn. (2020).
"""

from sympy import Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, average, i, mu

l, t = Quenched("l", i), Quenched("t", i)
x, w = Coupling("x", variance=l[i]), Feature("w")
gamma = Symbol("gamma", positive=True)

problem = ConvexProblem(
    minimize=Sum(Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2
    + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={Symbol("E_g"): Sum(l[i] * (t[i] - w[i]) ** 2, (i, 1, N))},
    name="Regression on a spectrum that is a power law",
    says=(
        "Where the variances of the features fall as the power a of their number and the strength of the target "
        "as the power b, the error falls with the number of data as the power b − 1 or 2a, whichever is smaller, "
        "without noise and penalty."
    ),
    cite=(
        "S. Spigler, M. Geiger, M. Wyart, J. Stat. Mech. 124001 (2020); B. Bordelon, A. Canatar, C. "
        "Pehlevan, Int. Conf. Mach. Learn. (2020)"
    ),
)
modes = range(1, 61)
values = {P: 30, gamma: Rational(1, 100), l: [Rational(1, k**2) for k in modes], t: [1 for k in modes]}
shown = [average(l[i] * (w[i] - t[i]) ** 2)]
